#include "app/serve/tls_context.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <utility>  // boost 1.74's asio/awaitable.hpp needs it first

#include <boost/asio/ssl/context.hpp>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "core/visible_text.h"

namespace tocsin::app {
namespace {

namespace ssl = boost::asio::ssl;

// An encrypted key must not have OpenSSL ask for its password on the terminal.
int no_password(char*, int, int, void*) { return 0; }

core::Error bad_file(const char* key, const std::string& file, const std::string& why) {
  ERR_clear_error();
  return core::invalid_argument("http.tls." + std::string(key) + ": " + core::visible(file) + ": " +
                                why);
}

// Empty: it can be read.
std::string why_unreadable(const std::string& file) {
  struct stat state {};
  if (::stat(file.c_str(), &state) != 0) return std::strerror(errno);
  if (S_ISDIR(state.st_mode)) return "it is a directory";
  const std::ifstream in(file);
  return in ? "" : std::strerror(errno);
}

core::Status use_certificate(SSL_CTX* context, const std::string& file) {
  if (const std::string why = why_unreadable(file); !why.empty())
    return bad_file("cert_file", file, why);
  if (SSL_CTX_use_certificate_chain_file(context, file.c_str()) == 1) return core::ok();
  return bad_file("cert_file", file, "no certificate in PEM (-----BEGIN CERTIFICATE-----)");
}

core::Status use_key(SSL_CTX* context, const TlsConfig& config) {
  const std::string& file = config.key_file;
  if (const std::string why = why_unreadable(file); !why.empty())
    return bad_file("key_file", file, why);
  if (SSL_CTX_use_PrivateKey_file(context, file.c_str(), SSL_FILETYPE_PEM) != 1) {
    const unsigned long error = ERR_peek_last_error();
    if (ERR_GET_REASON(error) == X509_R_KEY_VALUES_MISMATCH) {
      return bad_file("key_file", file,
                      "it is not the key of the certificate in " + core::visible(config.cert_file));
    }
    return bad_file("key_file", file,
                    "no private key in PEM without a password (-----BEGIN PRIVATE KEY-----)");
  }
  if (SSL_CTX_check_private_key(context) == 1) return core::ok();
  return bad_file("key_file", file,
                  "it is not the key of the certificate in " + core::visible(config.cert_file));
}

core::Status demand_certificates(SSL_CTX* context, const std::string& file) {
  if (const std::string why = why_unreadable(file); !why.empty())
    return bad_file("client_ca_file", file, why);
  STACK_OF(X509_NAME)* names = SSL_load_client_CA_file(file.c_str());
  if (names == nullptr || SSL_CTX_load_verify_locations(context, file.c_str(), nullptr) != 1) {
    sk_X509_NAME_pop_free(names, X509_NAME_free);
    return bad_file("client_ca_file", file, "no certificate in PEM (-----BEGIN CERTIFICATE-----)");
  }
  SSL_CTX_set_client_CA_list(context, names);  // it is the context's from here on
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return core::ok();
}

core::Result<std::shared_ptr<ssl::context>> made_context(const TlsConfig& config) {
  auto out = std::make_shared<ssl::context>(ssl::context::tls_server);
  SSL_CTX* context = out->native_handle();
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE);
  // Nothing is resumed: a certificate that is no longer good counts at the next connection.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_default_passwd_cb(context, no_password);
  if (const auto used = use_certificate(context, config.cert_file); !used) return used.error();
  if (const auto used = use_key(context, config); !used) return used.error();
  if (!config.client_ca_file.empty()) {
    if (const auto used = demand_certificates(context, config.client_ca_file); !used)
      return used.error();
  }
  ERR_clear_error();
  return out;
}

}  // namespace

std::vector<TlsContext::FileState> TlsContext::files() const {
  std::vector<FileState> out;
  for (const std::string* file : {&config_.cert_file, &config_.key_file, &config_.client_ca_file}) {
    struct stat state {};
    if (file->empty() || ::stat(file->c_str(), &state) != 0) {
      out.push_back({});
      continue;
    }
    constexpr std::int64_t kSecond = 1'000'000'000;
    out.push_back(
        {state.st_ino, state.st_size, state.st_mtim.tv_sec * kSecond + state.st_mtim.tv_nsec});
  }
  return out;
}

core::Result<std::unique_ptr<TlsContext>> TlsContext::load(TlsConfig config, core::Log& log) {
  std::unique_ptr<TlsContext> out(new TlsContext(std::move(config), log));
  out->seen_ = out->files();
  auto made = made_context(out->config_);
  if (!made) return made.error();
  out->context_ = std::move(*made);
  return out;
}

std::shared_ptr<ssl::context> TlsContext::current() {
  auto now = files();
  if (now == seen_) return context_;
  seen_ = std::move(now);
  auto made = made_context(config_);
  if (made) {
    context_ = std::move(*made);
    log_.info("http_certificate_renewed", {{"file", config_.cert_file}});
  } else {
    log_.warn("http_certificate_not_renewed", {{"error", made.error().message}});
  }
  return context_;
}

std::string certificate_name(const ssl_st* connection) {
  X509* shown = SSL_get_peer_certificate(connection);
  if (shown == nullptr) return {};
  char name[256] = "";
  const int length =
      X509_NAME_get_text_by_NID(X509_get_subject_name(shown), NID_commonName, name, sizeof name);
  X509_free(shown);
  return length > 0 ? core::visible(std::string_view(name, static_cast<std::size_t>(length)))
                    : "unnamed";
}

}  // namespace tocsin::app
