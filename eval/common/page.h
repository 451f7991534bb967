// SPDX-License-Identifier: MIT
// Pages: one HTML file with the data of a run, which draws its charts without any other file. The
// template is built from web/ (docs/pictures.md).
#pragma once

#include <string>

#include "eval/common/record_file.h"

namespace snapkv::eval {

/// Whether this program was built with the template.
bool has_pages();
/// For use before long work: throws kUsage if the program was built without pages, if the folder of
/// `path` is missing, or if `path` is a folder.
void check_page(const std::string& path);
/// The whole page: `data` in its block `<script type="application/json" id="data">`.
std::string make_page(const Json& data);
/// Writes the page, replacing an existing file, completely or not at all. Throws kRuntime.
void write_page(const std::string& path, const Json& data);

/// The data of a page about records: {"kind": kind, "version": ..., "records": [...]}.
Json records_page(const std::string& kind, Json records);

}  // namespace snapkv::eval
