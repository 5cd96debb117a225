// A small HTTP server for /metrics and health: Beast over one io thread of its own.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "app/serve/http_routes.h"
#include "config/config.h"
#include "core/log.h"
#include "core/result.h"

namespace tocsin::app {

struct HttpConfig {
  std::string listen = "127.0.0.1:9760";
};
void read(config::Reader& in, HttpConfig& out);

/// The handler answers every whole request, on the io thread, and must not block. An answer to HEAD
/// has the headers of its body and no body.
class HttpServer {
 public:
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  /// Binds and starts. Port 0 picks a free one. Errors: invalid_argument (address),
  /// failed_precondition (port taken, by whom where that can be known).
  static core::Result<std::unique_ptr<HttpServer>> start(const HttpConfig& config, Handler handler,
                                                         core::Log& log);
  ~HttpServer();
  /// "127.0.0.1:9760", with the port really bound.
  [[nodiscard]] const std::string& address() const noexcept;

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tocsin::app
