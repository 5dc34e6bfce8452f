#pragma once

#include <optional>
#include <string_view>

// Whether a text holds what looks like a secret, so that none is written to a file that every hook
// can read. By shape alone, letters of either case; no dictionary, no network, no regex. Pure, and
// its work grows linearly with the text, whatever the text is.
namespace interlock::kernel {

// What the text seems to hold ("an API key"); nothing when it looks harmless. Seen as secrets:
// - sk, pk, rk or ak, then '-' or '_', then 20 letters or digits or more;
// - ghp_, gho_, ghu_, ghs_ or ghr_, then 30 letters or digits or more;
// - xoxb-, xoxp-, xoxr-, xoxa- or xoxs-, then 20 letters, digits or '-' or more;
// - a JSON Web Token: eyJ…, two parts of 20 characters or more, each with a '.' behind it;
// - AKIA, then 16 letters or digits;
// - the header of a private key in PEM;
// - password, passwd, secret, token, api_key, apikey, api-key, access_key or private_key, then ':'
//   or '=', with or without blanks around it, then 8 characters or more that are no white space.
// All but the last two begin where a word begins: "task-…" holds no "sk-…".
std::optional<std::string_view> FindSecret(std::string_view text);

}  // namespace interlock::kernel
