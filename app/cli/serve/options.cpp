// SPDX-License-Identifier: MIT
#include "cli/serve/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>

#include "base/error.h"
#include "cli/common/policy_options.h"
#include "cli/common/units.h"
#include "cli/generate/long_prompt.h"
#include "server/http/page.h"
#include "server/scheduler/request_plan.h"

namespace snapkv::cli {
namespace {

constexpr const char* kNetworkGroup = "Network";
constexpr const char* kSchedulingGroup = "Requests";
constexpr size_t kOtherConnections = 64;  // in addition to those of running and waiting requests
constexpr uint64_t kLeastBodyMemory = uint64_t{1} << 20;
constexpr uint64_t kLeastDefaultBodies = uint64_t{128} << 20;
constexpr uint64_t kMostDefaultBodies = uint64_t{1} << 30;
constexpr int kMostParallel = 4096, kMostQueue = 100'000;

// Refuses an empty value: an unset variable in a script leaves one, and must not turn off a key or
// TLS.
CLI::Validator not_empty() {
  return CLI::Validator(
      [](const std::string& value) {
        const bool is_empty = value.find_first_not_of(" \t\r\n") == std::string::npos;
        return std::string(is_empty ? "the value is empty; leave the option out instead" : "");
      },
      "", "not_empty");
}

// Refuses empty environment variables, which would otherwise be ignored.
void refuse_empty_variables(std::initializer_list<const char*> names, const char* what) {
  for (const char* name : names) {
    if (std::getenv(name) == nullptr) continue;
    fail(ErrorCode::kUsage, "{} is set, but empty: unset it to serve without {}", name, what);
  }
}

void add_network_options(CLI::App& app, ServeSettings& s) {
  const auto add = [&](const char* name, auto& value, const char* help, const char* type) {
    return app.add_option(name, value, help)->type_name(type)->group(kNetworkGroup);
  };
  add("--host", s.http.host, "Address to listen on; 0.0.0.0: all of this machine", "ADDRESS")
      ->check(not_empty())
      ->capture_default_str();
  add("--port", s.http.port, "Port to listen on; 0: any that is free, which is printed", "N")
      ->check(whole_number(0, 65535))
      ->capture_default_str();
  add("--api-key", s.api_key,
      "Clients must send this key; other users of this machine may see it "
      "here, but not in --api-key-file or SNAPKV_API_KEY",
      "KEY")
      ->check(not_empty());
  add("--api-key-file", s.api_key_file,
      "A file with the keys that clients may send, one on each line", "FILE")
      ->check(not_empty());
  add("--tls-cert", s.http.tls_cert, "Serve HTTPS with this chain of certificates (PEM)", "FILE")
      ->check(not_empty());
  add("--tls-key", s.http.tls_key, "The certificate's private key (PEM)", "FILE")
      ->check(not_empty());
  add("--timeout", s.timeout, "End a request with an error after so many seconds; 0: never", "T")
      ->check(real_number(0, 1e9))
      ->capture_default_str();
  add("-a,--alias", s.alias, "The model's name in the API [default: its file's name]", "NAME");
}

void add_scheduling_options(CLI::App& app, ServeSettings& s) {
  const auto add = [&](const char* name, auto& value, const char* help, const char* type) {
    return app.add_option(name, value, help)
        ->type_name(type)
        ->capture_default_str()
        ->group(kSchedulingGroup);
  };
  add("--parallel", s.n_parallel, "Answers that are written at a time; more wait", "N")
      ->check(whole_number(1, kMostParallel));
  add("--max-queue", s.max_queue, "Requests that wait; more are refused (429)", "N")
      ->check(whole_number(0, kMostQueue));
  add("--prefill-share", s.prefill_share,
      "Share of the time that goes to reading prompts while answers are written", "X")
      ->check(real_number(0.01, 1));
  add("--kv-memory", s.kv_memory,
      "Memory of all caches together, as in 4G, of kept conversations and prefixes too, and of "
      "what "
      "reading a prompt takes; 0: what the system has left",
      "SIZE")
      ->transform(byte_size(0));
  app.add_option("--prefix-cache", s.prefix_cache,
                 "Part of --kv-memory for beginnings that many prompts share, as in 512M; 0: none "
                 "is kept [default: an eighth of it]")
      ->type_name("SIZE")
      ->group(kSchedulingGroup)
      ->transform(byte_size(0));
  app.add_option("--body-memory", s.body_memory,
                 "Memory, beside --kv-memory, of requests' bodies until they are tokens; more of "
                 "them wait, and one may have a sixteenth of it, up to 64M [default: an eighth of "
                 "--kv-memory, from 128M to 1G]")
      ->type_name("SIZE")
      ->group(kSchedulingGroup)
      ->transform(byte_size(kLeastBodyMemory));
  add("--reuse", s.reuse,
      "What a request that continues a kept conversation reads: all of it again (off), what is new "
      "over the rows that were kept (append), or what is new over every row, from which is chosen "
      "again (refresh)",
      "HOW")
      ->check(CLI::IsMember({"off", "append", "refresh"}));
  add("--tool-calls", s.tool_calls,
      "Which calls of tools are found in answers: of the form that the model's template asks for "
      "(strict), or of any form that models write, such as JSON in a code block (auto)",
      "HOW")
      ->check(CLI::IsMember({"auto", "strict"}));
  add("--snapshot-dir", s.snapshot_dir,
      "The folder of snapshots, the only one that clients reach, made where it is not there; "
      "empty: "
      "none",
      "DIR");
  add_long_option(app, s.long_mode)->group(kSchedulingGroup);
}

/// Messages to clients name a template, and no folders of the server.
ChatTemplate without_folders(const ChatTemplate& tmpl) {
  const size_t slash = tmpl.name().rfind('/');
  if (slash == std::string::npos) return tmpl;
  return ChatTemplate::parse(tmpl.source(), tmpl.name().substr(slash + 1));
}

}  // namespace

void add_serve_options(CLI::App& app, ServeSettings& s) {
  add_context_option(app, s.n_ctx, "a conversation");
  add_network_options(app, s);
  s.chat.add_options(app);
  add_model_argument(app, s.model);
  add_running_options(app, s.model);
  add_cache_options(app, s.cache);
  add_draft_options(app, s.cache, s.model);
  // here the server's memory option and --reuse take their place
  app.remove_option(app.get_option("--kv-memory"));
  app.remove_option(app.get_option("--kv-refresh"));
  add_scheduling_options(app, s);
  add_sampler_options(app, s.sampler);
}

server::HttpOptions http_options(const ServeSettings& s) {
  server::HttpOptions options = s.http;
  options.most_of_address =
      static_cast<size_t>(s.n_parallel) + static_cast<size_t>(s.max_queue) + kOtherConnections;
  options.most_connections = options.most_of_address + options.most_of_address / 3;
  return options;
}

uint64_t body_memory(const ServeSettings& s, uint64_t kv_memory) {
  return s.body_memory.value_or(std::clamp(kv_memory / 8, kLeastDefaultBodies, kMostDefaultBodies));
}

void check_kv_memory(const Model& model, const server::SchedulerOptions& options) {
  const size_t least = server::least_memory(model, options.session);
  if (options.kv_memory >= least) return;
  fail(ErrorCode::kDoesNotFit,
       "--kv-memory: the shortest request needs {} beside the weights, and there is {}: no request "
       "could be served",
       format_bytes(least), format_bytes(options.kv_memory));
}

server::ServiceOptions service_options(const ServeSettings& s) {
  server::ServiceOptions options;
  if (!s.api_key_file.empty()) options.api_keys = server::read_keys(s.api_key_file);
  if (!s.api_key.empty()) options.api_keys.push_back(s.api_key);
  if (options.api_keys.empty()) {
    refuse_empty_variables({"SNAPKV_API_KEY", "SNAPKV_API_KEY_FILE"}, "a key");
  }
  if (s.http.tls_cert.empty()) {
    refuse_empty_variables({"SNAPKV_TLS_CERT", "SNAPKV_TLS_KEY"}, "TLS");
  }
  options.only_local =
      s.http.host == "localhost" || s.http.host == "::1" || s.http.host.starts_with("127.");
  options.page = server::kChatPage;
  return options;
}

server::SchedulerOptions scheduler_options(const ServeSettings& s, const ModelInfo& model) {
  server::SchedulerOptions options;
  options.session = session_options(s.cache, s.n_ctx, &model);
  options.reuse = s.reuse == "off"      ? server::Reuse::off
                  : s.reuse == "append" ? server::Reuse::append
                                        : server::Reuse::refresh;
  options.kv_memory = s.kv_memory;
  options.prefix_cache = s.prefix_cache;
  options.n_parallel = s.n_parallel;
  options.max_queue = s.max_queue;
  options.prefill_share = s.prefill_share;
  return options;
}

server::ApiOptions api_options(const ServeSettings& s, const Model& model) {
  server::ApiOptions options;
  const ModelInfo& info = model.info();
  options.model_name =
      s.alias.empty() ? std::filesystem::path(info.path).filename().string() : s.alias;
  options.created = std::chrono::duration_cast<std::chrono::seconds>(
                        std::chrono::system_clock::now().time_since_epoch())
                        .count();
  options.session = session_options(s.cache, s.n_ctx, &info);
  options.sampler = s.sampler;
  options.policy = [cache = s.cache, info](const std::string& policy) {
    return policy_config(cache, policy, &info);
  };
  const ModelChat chat = model.chat();
  if (!chat.templates.empty() || s.chat.names_template()) {
    const std::string file = std::filesystem::path(s.model.path).filename().string();
    options.chat_template = without_folders(s.chat.choose(chat, file, false));
    options.tool_template = without_folders(s.chat.choose(chat, file, true));
  }
  options.any_call_form = s.tool_calls == "auto";
  options.template_variables = s.chat.variables();
  add_token_texts(chat, options.template_variables);
  options.system = s.chat.system();
  options.snapshot_dir = s.snapshot_dir;
  options.long_mode = s.long_mode;
  options.timeout = s.timeout;
  return options;
}

}  // namespace snapkv::cli
