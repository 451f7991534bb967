// SPDX-License-Identifier: MIT
// The fuzz target for the server, for the fuzzer and the replay.
#pragma once

#include <string>
#include <string_view>

namespace snapkv::test {

/// Reads the body of a request and writes the answers to it. The first byte selects the endpoint: c
/// (chat completion), p (completion), r (response), m (message), n (count_tokens), t (tokenize), d
/// (detokenize), a (apply-template), s (snapshot). The bytes after the first NUL are the text with
/// which the model answers. w: only the text, in pieces; the next byte selects its syntax. Returns
/// what a client receives; empty for a client's error. Any other exception is passed on.
std::string serve_hostile(std::string_view bytes);

}  // namespace snapkv::test
