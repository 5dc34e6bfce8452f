#pragma once

#include <optional>
#include <string_view>

// Detects text that looks like a secret, so that it is not stored in a file that every hook can
// read. Only the shape of the text counts; letter case does not matter. Pure, and its running time
// is linear in the length of any text.
namespace interlock::kernel {

// Returns the kind of secret ("an API key"), or nullopt if the text looks harmless. Detected:
// - sk, pk, rk or ak, then '-' or '_', then 20 letters or digits or more;
// - ghp_, gho_, ghu_, ghs_ or ghr_, then 30 letters or digits or more;
// - xoxb-, xoxp-, xoxr-, xoxa- or xoxs-, then 20 letters, digits or '-' or more;
// - a JSON Web Token: eyJ…, two parts of at least 20 characters, each followed by a '.';
// - AKIA, then 16 letters or digits;
// - the header of a private key in PEM;
// - password, passwd, secret, token, api_key, apikey, api-key, access_key or private_key, then ':'
//   or '=', with or without spaces around it, then at least 8 characters other than white space.
// All but the last two must begin at the start of a word: "task-…" contains no "sk-…".
std::optional<std::string_view> FindSecret(std::string_view text);

}  // namespace interlock::kernel
