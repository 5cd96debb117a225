// The certificate of the HTTP server. Its files are read again when they change.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "app/serve/http_config.h"
#include "core/log.h"
#include "core/result.h"

struct ssl_st;  // OpenSSL's connection

namespace boost::asio::ssl {
class context;
}

namespace tocsin::app {

/// TLS 1.2 and 1.3. Belongs to the io thread.
class TlsContext {
 public:
  /// invalid_argument: a file that is not what it should be, and why.
  static core::Result<std::unique_ptr<TlsContext>> load(TlsConfig config, core::Log& log);

  /// For a connection that begins now. New files that are no good are told once, and the old ones
  /// stay in use.
  std::shared_ptr<boost::asio::ssl::context> current();

 private:
  struct FileState {
    std::uint64_t inode = 0;
    std::int64_t size = -1;  // there is none
    std::int64_t changed = 0;
    friend bool operator==(const FileState&, const FileState&) = default;
  };
  TlsContext(TlsConfig config, core::Log& log) : config_(std::move(config)), log_(log) {}
  [[nodiscard]] std::vector<FileState> files() const;

  TlsConfig config_;
  core::Log& log_;
  std::vector<FileState> seen_;
  std::shared_ptr<boost::asio::ssl::context> context_;
};

/// The common name in the certificate that the client has shown; empty: it has shown none.
std::string certificate_name(const ssl_st* connection);

}  // namespace tocsin::app
