// SPDX-License-Identifier: MIT
// Service: the endpoints. It adds them to an HttpServer, and answers 503 before there is an engine
// and while it drains.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "server/api/context.h"
#include "server/http/access.h"
#include "server/http/answering.h"
#include "server/http/http_server.h"
#include "server/metrics.h"
#include "server/request_log.h"

namespace snapkv::server {

struct ServiceOptions {
  std::vector<std::string> api_keys;
  bool only_local = true;  ///< the server listens on a loopback address
  double ping_seconds = 30;
  std::string page;  ///< HTML at "/"; empty: a line of text
  RequestLog::Options log = {};
};

class Service {
 public:
  /// `http` must outlive this, and must have stopped serving when this is destroyed.
  Service(HttpServer& http, ServiceOptions options);

  /// Starts computing requests. `engine` must outlive everything that `http` serves.
  void begin(RequestEngine& engine, ApiOptions options);
  /// Makes /health report it, and tells the engine to refuse new requests.
  void drain();
  /// Whether nothing is being computed or sent.
  bool idle() const;

 private:
  using Handler = std::function<void(const httplib::Request&, httplib::Response&)>;
  /// A request's body, which a handler may free when it has read it.
  struct Body {
    Json json;
    BodyMemory::Share share = {};
  };
  using BodyHandler = std::function<void(const ApiContext&, Body& body, const httplib::Request&,
                                         httplib::Response&)>;
  using ReadExchange = Exchange (*)(const Json&, const ApiContext&);

  /// The checks that every request passes first: framing, access, preflights.
  httplib::Server::HandlerResponse before_routing(const httplib::Request& request,
                                                  httplib::Response& response) const;
  /// Writes the line of a request that no answer() has written.
  void log(const httplib::Request& request, const httplib::Response& response) const;
  void add_generating_routes();
  void add_model_routes();
  void add_state_routes();
  void add_slot_routes();
  void add_document_routes();
  void add_ollama_routes();
  /// Routes of other servers, which are answered with what is missing.
  void add_missing_routes();
  /// The methods that a path takes, "GET, HEAD"; empty: there is no such path.
  std::string methods_for(const std::string& path) const;
  /// 405 with the header Allow for a path that takes other methods, else 404.
  void refuse_route(const httplib::Request& request, httplib::Response& response) const;
  void get(const std::string& path, Handler handler);
  void post(const std::string& path, BodyHandler handler);
  void generate(const std::string& path, ReadExchange read);
  /// Frees the body and computes its answer.
  void answer_exchange(Exchange exchange, Body& body, const httplib::Request& request,
                       httplib::Response& response);

  /// Throws ApiError (503) if there is no engine yet.
  const ApiContext& context() const;
  void answer_health(httplib::Response& response) const;

  HttpServer& http_;
  /// A path, which is a regular expression, and a method that it takes.
  struct Route {
    std::string method;
    std::regex path;
  };

  const ServiceOptions options_;
  const Access access_;
  const RequestLog log_;
  std::vector<Route> routes_;
  Metrics metrics_;
  std::atomic<int> n_active_ = 0;
  std::atomic<bool> draining_ = false;
  ApiOptions api_options_;
  std::unique_ptr<ApiContext> held_context_;
  std::atomic<const ApiContext*> context_ = nullptr;
};

}  // namespace snapkv::server
