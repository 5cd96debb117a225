// A small HTTP server: Beast over one io thread of its own, and two more for answers that may take long.
#pragma once

#include <memory>
#include <string>

#include "app/serve/http_config.h"
#include "app/serve/http_routes.h"
#include "core/log.h"
#include "core/result.h"

namespace tocsin::app {

/// Answers every whole request from a table of routes: on the io thread, or on one of two workers
/// where the route may wait. An answer to HEAD has the headers of its body and no body.
class HttpServer {
 public:
  /// Binds and starts. Port 0 picks a free one. Errors: invalid_argument (address, or a file of
  /// `tls`, and why), failed_precondition (port taken, by whom where that can be known).
  static core::Result<std::unique_ptr<HttpServer>> start(const HttpConfig& config,
                                                         HttpRoutes routes, core::Log& log);
  ~HttpServer();
  /// "127.0.0.1:9760", with the port really bound.
  [[nodiscard]] const std::string& address() const noexcept;

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tocsin::app
