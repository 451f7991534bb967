// SPDX-License-Identifier: MIT
#include "server/service.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "server/api/endpoints.h"
#include "server/api/generation_fields.h"
#include "server/http/body.h"
#include "server/http/page.h"

namespace snapkv::server {
namespace {

// Longer than any route. The limit is needed because regular expressions take stack for every byte.
constexpr size_t kLongestPath = 1000;

/// Whether the library has read all lines of the header. It skips lines that it can't read or whose
/// value is empty, and one of them may announce a body.
bool all_lines_are_known(const httplib::Request& request, const Connection& connection) {
  // versions before 0.27 add these
  static const std::set<std::string> kAdded = {"REMOTE_ADDR", "REMOTE_PORT", "LOCAL_ADDR",
                                               "LOCAL_PORT"};
  constexpr size_t kOthers = 2;  // the request line, and the empty line at the end
  const auto n = std::count_if(request.headers.begin(), request.headers.end(),
                               [](const auto& header) { return !kAdded.contains(header.first); });
  return connection.n_header_lines() == static_cast<size_t>(n) + kOthers;
}

}  // namespace

Service::Service(HttpServer& http, ServiceOptions options)
    : http_(http),
      options_(std::move(options)),
      access_(options_.api_keys, options_.only_local),
      log_(options_.log) {
  if (log_.on()) {
    http_.set_logger([this](const httplib::Request& request, const httplib::Response& response) {
      log(request, response);
    });
  }
  http_.set_pre_routing_handler(
      [this](const httplib::Request& request, httplib::Response& response) {
        return before_routing(request, response);
      });
  http_.set_error_handler([this](const httplib::Request& request, httplib::Response& response) {
    if (!response.body.empty()) return;
    if (response.status == 404) return refuse_route(request, response);
    write_error(request, response, ApiError(response.status, "the request could not be read"));
  });
  add_generating_routes();
  add_model_routes();
  add_state_routes();
  add_slot_routes();
  add_document_routes();
  add_ollama_routes();
  add_missing_routes();
  // the library would read a body that nobody needs
  const auto refuse = [this](const httplib::Request& request, httplib::Response& response,
                             const httplib::ContentReader&) {
    if (Connection* connection = Connection::current()) connection->close_after_answer();
    refuse_route(request, response);
  };
  http_.Post("[\\s\\S]*", refuse);
  http_.Delete("[\\s\\S]*", refuse);
}

httplib::Server::HandlerResponse Service::before_routing(const httplib::Request& request,
                                                         httplib::Response& response) const {
  using Response = httplib::Server::HandlerResponse;
  // a request for WebSocket, which versions from 0.33 on ask about twice: it has been let through
  if (response.has_header("request-id")) return Response::Unhandled;
  const std::string id = "req_" + random_id();
  for (const char* name : {"x-request-id", "request-id"}) response.set_header(name, id);
  Connection* connection = Connection::current();
  if (connection != nullptr) {
    connection->begin_body(request.version);
    if (!all_lines_are_known(request, *connection)) connection->close_after_answer();
  }
  const bool has_body =
      request.has_header("Content-Length") || request.has_header("Transfer-Encoding");
  const bool reads_body = request.method == "POST";  // the body of a DELETE has no meaning
  if (has_body && !reads_body && connection != nullptr) connection->close_after_answer();
  try {
    check_framing(request, http_.most_body());
    access_.check(request, response);
  } catch (const ApiError& e) {
    if (connection != nullptr && has_body) connection->close_after_answer();
    write_error(request, response, e);
    return Response::Handled;
  }
  const bool has_routes = request.path.size() <= kLongestPath &&
                          (reads_body || request.method == "GET" || request.method == "HEAD" ||
                           request.method == "OPTIONS" || request.method == "DELETE");
  if (!has_routes) {
    if (connection != nullptr && has_body) connection->close_after_answer();
    refuse_route(request, response);
    return Response::Handled;
  }
  if (request.method != "OPTIONS") return Response::Unhandled;
  Access::answer_preflight(request, response);
  return Response::Handled;
}

void Service::log(const httplib::Request& request, const httplib::Response& response) const {
  // that of an answer is written at its end
  static const std::set<std::string> kAnswering = {
      "/v1/chat/completions", "/v1/completions", "/v1/responses",
      "/v1/messages",         "/api/chat",       "/api/generate"};
  if (response.status < 400 && request.method == "POST" && kAnswering.contains(request.path))
    return;
  const std::string message = take_written_error();
  log_.replied(log_title(request), request.path, response.status, message);
}

void Service::begin(RequestEngine& engine, ApiOptions options) {
  api_options_ = std::move(options);
  held_context_ = std::make_unique<ApiContext>(ApiContext{engine, api_options_});
  context_ = held_context_.get();
}

void Service::drain() {
  draining_ = true;
  if (const ApiContext* context = context_) context->engine.drain();
}

bool Service::idle() const {
  const ApiContext* context = context_;
  return n_active_ == 0 && (context == nullptr || context->engine.idle());
}

const ApiContext& Service::context() const {
  if (const ApiContext* context = context_) return *context;
  throw ApiError(503, "the model is being loaded", "loading", "", 1);
}

std::string Service::methods_for(const std::string& path) const {
  if (path.size() > kLongestPath) return "";
  std::set<std::string> methods;
  for (const Route& route : routes_) {
    if (std::regex_match(path, route.path)) methods.insert(route.method);
  }
  if (methods.contains("GET")) methods.insert("HEAD");
  return fmt::format("{}", fmt::join(methods, ", "));
}

void Service::refuse_route(const httplib::Request& request, httplib::Response& response) const {
  const std::string methods = methods_for(request.path);
  if (methods.empty()) return write_error(request, response, no_such_route(request));
  response.set_header("Allow", methods);
  write_error(request, response,
              ApiError(405,
                       fmt::format("{} takes {}, not {}", request.path, methods,
                                   request.method.substr(0, 20)),
                       "method_not_allowed"));
}

void Service::get(const std::string& path, Handler handler) {
  routes_.push_back({"GET", std::regex(path)});
  http_.Get(path, [handler = std::move(handler)](const httplib::Request& request,
                                                 httplib::Response& response) {
    try {
      handler(request, response);
    } catch (...) {
      write_error(request, response, current_error());
    }
  });
}

void Service::post(const std::string& path, BodyHandler handler) {
  routes_.push_back({"POST", std::regex(path)});
  http_.Post(path, [this, handler = std::move(handler)](const httplib::Request& request,
                                                        httplib::Response& response,
                                                        const httplib::ContentReader& reader) {
    try {
      ReceivedBody received = read_body(request, reader, http_.most_body(), http_.bodies());
      const ApiContext& all = context();
      Body body{parse_body(received, http_.bodies())};
      body.share = std::move(received.share);
      handler(all, body, request, response);
    } catch (...) {
      write_error(request, response, current_error());
    }
  });
}

void Service::generate(const std::string& path, ReadExchange read) {
  post(path, [this, read](const ApiContext& all, Body& body, const httplib::Request& request,
                          httplib::Response& response) {
    answer_exchange(read(body.json, all), body, request, response);
  });
}

void Service::answer_exchange(Exchange exchange, Body& body, const httplib::Request& request,
                              httplib::Response& response) {
  body.json = Json();
  body.share.end_parsing();
  answer(std::move(exchange), std::move(body.share), request, response,
         {context().engine, metrics_, n_active_, options_.ping_seconds, log_});
}

void Service::add_generating_routes() {
  generate("/v1/chat/completions", read_chat_completion);
  generate("/v1/completions", read_completion);
  generate("/v1/responses", read_response);
  generate("/v1/messages", read_messages);
  post("/v1/messages/count_tokens",
       [](const ApiContext& all, Body& body, const httplib::Request&, httplib::Response& response) {
         write_json(response, {{"input_tokens", count_message_tokens(body.json, all)}});
       });
  post("/v1/responses/input_tokens",
       [](const ApiContext& all, Body& body, const httplib::Request&, httplib::Response& response) {
         write_json(response, {{"object", "response.input_tokens"},
                               {"input_tokens", count_response_tokens(body.json, all)}});
       });
}

void Service::add_model_routes() {
  for (const char* path : {"/v1/models", "/models"}) {
    get(path, [this](const httplib::Request&, httplib::Response& response) {
      write_json(response, models_json(context()));
    });
  }
  get("/v1/models/(.{1,200})",  // names may contain slashes
      [this](const httplib::Request& request, httplib::Response& response) {
        write_json(response, model_json(context(), request.matches[1]));
      });
  get("/props", [this](const httplib::Request&, httplib::Response& response) {
    write_json(response, props_json(context()));
  });
  get("/tokenizer_info", [this](const httplib::Request&, httplib::Response& response) {
    write_json(response, tokenizer_info_json(context()));
  });
  const auto add = [this](const char* path, Json (*compute)(const Json&, const ApiContext&)) {
    post(path,
         [compute](const ApiContext& all, Body& body, const httplib::Request&,
                   httplib::Response& response) { write_json(response, compute(body.json, all)); });
  };
  post("/tokenize",
       [](const ApiContext& all, Body& body, const httplib::Request&, httplib::Response& response) {
         write_text(response, tokenize(body.json, all), "application/json");
       });
  add("/detokenize", detokenize);
  add("/apply-template", apply_template);
  add("/v1/kv/fit", fit_json);
}

void Service::answer_health(httplib::Response& response) const {
  const bool loading = context_ == nullptr;
  if (!loading && !draining_) {
    write_json(response, {{"status", "ok"}});
    return;
  }
  const char* status = draining_ ? "draining" : "loading";
  Json json = openai_error(ApiError(
      503, draining_ ? "the server is about to end" : "the model is being loaded", status));
  json["status"] = status;
  write_json(response, json, 503);
}

void Service::add_state_routes() {
  for (const char* path : {"/health", "/v1/health"}) {
    get(path,
        [this](const httplib::Request&, httplib::Response& response) { answer_health(response); });
  }
  get("/metrics", [this](const httplib::Request&, httplib::Response& response) {
    response.set_content(metrics_.text(context().engine.stats()), "text/plain; version=0.0.4");
  });
  const std::string policy = content_security_policy(options_.page);
  for (const char* path : {"/", "/index.html"}) {
    get(path, [this, policy](const httplib::Request&, httplib::Response& response) {
      if (options_.page.empty()) {
        response.set_content("snapkv serve: this build has no page; the API is at /v1\n",
                             "text/plain");
      } else {
        write_page(response, options_.page, policy);
      }
    });
  }
}

}  // namespace snapkv::server
