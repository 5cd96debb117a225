// A client of the HTTP server for tests: sockets of loopback, in clear or over TLS.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

namespace tocsin::app {

/// Certificates of a temporary folder, made by the `openssl` program.
class TestCertificates {
 public:
  TestCertificates() { make("server"); }
  TestCertificates(const TestCertificates&) = delete;
  TestCertificates& operator=(const TestCertificates&) = delete;
  ~TestCertificates() { std::filesystem::remove_all(folder_); }

  /// `name`.crt and `name`.key, self-signed: a root and its only leaf. Over those that are there.
  void make(const std::string& name) const {
    const std::string command =
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "
        "/CN=" +
        name + " -addext subjectAltName=IP:127.0.0.1 -keyout " + path(name + ".key") + " -out " +
        path(name + ".crt") + " 2>/dev/null";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }
  [[nodiscard]] std::string path(const std::string& file) const {
    return (folder_ / file).string();
  }

 private:
  const std::filesystem::path folder_ = [] {
    std::string name = (std::filesystem::temp_directory_path() / "tocsin-tls-XXXXXX").string();
    return std::filesystem::path(mkdtemp(name.data()));
  }();
};

/// One connection. `trusted`: file of the root that the server's certificate must lead to; empty: in
/// clear. `own`: file name without ending of the certificate to show; empty: none.
class TestClient {
 public:
  explicit TestClient(const std::string& address, const std::string& trusted = "",
                      const std::string& own = "") {
    const std::size_t colon = address.rfind(':');
    std::uint16_t port = 0;
    std::from_chars(address.data() + colon + 1, address.data() + address.size(), port);
    fd_ = ::socket(AF_INET, SOCK_STREAM, 0);
    const timeval patience{15, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    ::inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    if (!trusted.empty()) shake_hands(trusted, own);
  }
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;
  ~TestClient() {
    tls_.reset();
    ::close(fd_);
  }

  /// False: the handshake has failed.
  [[nodiscard]] bool speaks() const { return speaks_; }
  void send(std::string_view text) {
    if (tls_) {
      SSL_write(tls_.get(), text.data(), static_cast<int>(text.size()));
    } else {
      EXPECT_EQ(::send(fd_, text.data(), text.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(text.size()));
    }
  }
  /// What comes next; empty: the connection has ended.
  std::string receive() {
    char buffer[4096];
    const ssize_t got =
        tls_ ? SSL_read(tls_.get(), buffer, sizeof buffer) : ::recv(fd_, buffer, sizeof buffer, 0);
    timed_out_ = got < 0 && errno == EAGAIN;
    return got > 0 ? std::string(buffer, static_cast<std::size_t>(got)) : "";
  }
  /// All up to where this text has come, or the end.
  std::string receive_to(std::string_view text) {
    std::string out;
    for (std::string more; out.find(text) == std::string::npos && !(more = receive()).empty();)
      out += more;
    return out;
  }
  std::string receive_all() {
    std::string out;
    for (std::string more; !(more = receive()).empty();) out += more;
    return out;
  }
  /// The last receive() ended because nothing came: the connection is still there.
  [[nodiscard]] bool timed_out() const { return timed_out_; }
  [[nodiscard]] int fd() const { return fd_; }

 private:
  void shake_hands(const std::string& trusted, const std::string& own) {
    context_.reset(SSL_CTX_new(TLS_client_method()));
    SSL_CTX_load_verify_locations(context_.get(), trusted.c_str(), nullptr);
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    if (!own.empty()) {
      SSL_CTX_use_certificate_file(context_.get(), (own + ".crt").c_str(), SSL_FILETYPE_PEM);
      SSL_CTX_use_PrivateKey_file(context_.get(), (own + ".key").c_str(), SSL_FILETYPE_PEM);
    }
    tls_.reset(SSL_new(context_.get()));
    SSL_set_fd(tls_.get(), fd_);
    speaks_ = SSL_connect(tls_.get()) == 1;
  }
  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
    void operator()(SSL* tls) const { SSL_free(tls); }
  };
  int fd_ = -1;
  bool speaks_ = true;
  bool timed_out_ = false;
  std::unique_ptr<SSL_CTX, Free> context_;
  std::unique_ptr<SSL, Free> tls_;
};

/// One request, and all that is answered.
inline std::string ask_once(const std::string& address, const std::string& request,
                            const std::string& trusted = "") {
  TestClient client(address, trusted);
  client.send(request);
  return client.receive_all();
}

}  // namespace tocsin::app
