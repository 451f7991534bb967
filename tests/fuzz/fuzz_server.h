// SPDX-License-Identifier: MIT
// What the fuzz target of the server and its replay share.
#pragma once

#include <string>
#include <string_view>

namespace snapkv::test {

/// Reads the body of a request and writes the answers to it. The first byte says of which endpoint:
/// c (chat completion), p (completion), r (response), m (message), n (count_tokens), t (tokenize),
/// d (detokenize), a (apply-template), s (snapshot). What follows the first NUL is the text that
/// the model answers. w: the text alone, in pieces; the byte after says of which syntax. Returns
/// what a client gets; empty where it is an error of the client's. All else is for the caller to
/// see.
std::string serve_hostile(std::string_view bytes);

}  // namespace snapkv::test
