// SPDX-License-Identifier: MIT
// snapkv convert: writes a Hugging Face folder, or a GGUF file, as one GGUF file.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/timer.h"
#include "cli/commands.h"
#include "cli/common/output_files.h"
#include "cli/common/progress.h"
#include "cli/common/signals.h"
#include "cli/common/terminal.h"
#include "cli/common/units.h"
#include "snapkv/convert.h"

namespace snapkv::cli {
namespace {

struct ConvertSettings {
  std::string from, to;
  std::string type = "auto";
  bool force = false;
};

std::optional<DType> type_of(const std::string& type) {
  if (type == "f32") return DType::f32;
  if (type == "f16") return DType::f16;
  if (type == "bf16") return DType::bf16;
  if (type == "q8_0") return DType::q8_0;
  return std::nullopt;
}

int run_convert(const ConvertSettings& s, const CommonSettings& common) {
  std::error_code ignored;  // conversion reports why the name can't be used
  if (!s.force && std::filesystem::exists(s.to, ignored)) {
    fail(ErrorCode::kUsage, "'{}' exists already; --force replaces it", s.to);
  }
  const Timer timer;
  ConvertResult result;
  {
    ProgressDisplay display(!common.no_progress, common.verbose);
    display.set_title("convert");
    result = convert_model({.from = s.from,
                            .to = s.to,
                            .type = type_of(s.type),
                            .overwrite = s.force,
                            .progress = [&](double fraction) {
                              display.show_fraction(fraction, timer.seconds());
                              return !interrupted();
                            }});
  }
  write_stderr(fmt::format("{}: {}, {}, in {}\n", s.to, plural(result.n_tensors, "tensor"),
                           format_bytes(result.bytes), format_seconds(timer.seconds())));
  return 0;
}

}  // namespace

Command add_convert_command(CLI::App& root, const CommonSettings& common) {
  auto s = std::make_shared<ConvertSettings>();
  CLI::App* app =
      root.add_subcommand("convert", "Write a model as one GGUF file, which llama.cpp reads too");
  app->add_option("MODEL", s->from,
                  "Folder of a Hugging Face model (config.json, safetensors, tokenizer.json or "
                  "tokenizer.model), or a GGUF file")
      ->type_name("DIR|FILE")
      ->required();
  mark_output(app->add_option("-o,--output", s->to, "The GGUF file to write"), OutputKind::file)
      ->type_name("FILE")
      ->required();
  app->add_option("--type", s->type,
                  "Type of the matrices; auto: the one they have. llama-quantize makes smaller "
                  "types of the result")
      ->check(CLI::IsMember({"auto", "f32", "f16", "bf16", "q8_0"}))
      ->type_name("TYPE")
      ->capture_default_str();
  app->add_flag("-f,--force", s->force, "Replace FILE if it exists");
  return {app, [s, &common] { return run_convert(*s, common); }};
}

}  // namespace snapkv::cli
