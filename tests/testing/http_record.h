#pragma once

#include <string_view>

#include "testing/http_client.h"

namespace interlock::testing {

// Writes one answer and its question down, as a line of JSON in a file of this process in the
// directory that IL_RECORD_DIR names; without it, nothing. What the whole suite heard is then held
// against the server's own description (tests/e2e/check_answers.py).
//
//   {"method":"GET","target":"/health","content_type":"application/json","allow":"",
//    "location":"","body":"…","status":200}
//
// `method` is "" when the question is not known. The body stands there byte by byte: where it is no
// UTF-8 the line is none either, which the reader takes for a fault of the answer. Thread-safe.
void RecordExchange(const HttpQuestion& question, const HttpAnswer& answer);

// Writes the keys and tokens down that a client sends, and the token that an answer hands out, once
// each, a line each in a second file of this process: whatever the suite's programs wrote is then
// searched for them (check_secrets.py). Thread-safe.
void RecordSecretsSent(std::string_view request);
void RecordSecretsGiven(std::string_view body);

// Writes a text down that came over a WebSocket, in a third file, which is searched for secrets
// too. Thread-safe.
void RecordText(std::string_view text);

}  // namespace interlock::testing
