#include "app/http_server.h"

#include <utility>  // boost 1.74's asio/awaitable.hpp needs it first

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/strand.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <charconv>
#include <thread>

namespace tocsin::app {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;

constexpr auto kIdle = std::chrono::seconds(30);
constexpr std::size_t kMaxRequestBytes = 64 * 1024;

// One connection: reads a request, answers, and again while kept alive.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, const HttpServer::Handler& handler)
      : stream_(std::move(socket)), handler_(handler) {}

  void read() {
    parser_.emplace();
    parser_->body_limit(kMaxRequestBytes);
    stream_.expires_after(kIdle);
    http::async_read(stream_, buffer_, *parser_,
                     [self = shared_from_this()](beast::error_code error, std::size_t) {
                       if (!error) self->answer();
                     });
  }

 private:
  void answer() {
    const auto& request = parser_->get();
    HttpResponse made;
    if (request.method() != http::verb::get && request.method() != http::verb::head) {
      made = {405, "text/plain; charset=utf-8", "only GET and HEAD are served here\n"};
    } else {
      const std::string target(request.target());
      made = handler_(std::string_view(target).substr(0, target.find('?')));
    }
    response_ = {};
    response_.version(request.version());
    response_.result(static_cast<unsigned>(made.status));
    response_.set(http::field::content_type, made.content_type);
    response_.keep_alive(request.keep_alive());
    response_.content_length(made.body.size());
    if (request.method() != http::verb::head) response_.body() = std::move(made.body);
    http::async_write(stream_, response_,
                      [self = shared_from_this()](beast::error_code error, std::size_t) {
                        if (!error && self->response_.keep_alive()) return self->read();
                        beast::error_code ignored;
                        self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
                      });
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_{kMaxRequestBytes};
  const HttpServer::Handler& handler_;
  std::optional<http::request_parser<http::string_body>> parser_;
  http::response<http::string_body> response_;
};

core::Result<tcp::endpoint> parse_endpoint(const std::string& listen) {
  const std::size_t colon = listen.rfind(':');
  std::uint16_t port = 0;
  const char* last = listen.data() + listen.size();
  const char* digits = colon == std::string::npos ? last : listen.data() + colon + 1;
  const auto [end, failure] = std::from_chars(digits, last, port);
  if (failure != std::errc{} || end != last) {
    return core::invalid_argument("http.listen: expected ADDRESS:PORT, found \"" + listen + "\"");
  }
  std::string host = listen.substr(0, colon);
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  beast::error_code error;
  const auto address = asio::ip::make_address(host.empty() ? "0.0.0.0" : host, error);
  if (error) return core::invalid_argument("http.listen: \"" + host + "\" is no IP address");
  return tcp::endpoint{address, port};
}

}  // namespace

struct HttpServer::Impl {
  Impl(Handler h, core::Log& l) : handler(std::move(h)), log(l) {}

  void accept() {
    acceptor.async_accept(asio::make_strand(io),
                          [this](beast::error_code error, tcp::socket socket) {
                            if (error == asio::error::operation_aborted) return;
                            if (!error)
                              std::make_shared<Session>(std::move(socket), handler)->read();
                            accept();
                          });
  }

  asio::io_context io{1};
  tcp::acceptor acceptor{io};
  Handler handler;
  core::Log& log;
  std::string address;
  std::jthread thread;  // last: it is joined before what it uses goes away
};

void read(config::Reader& in, HttpConfig& out) {
  config::Check<std::string> address;
  address.ok = [](const std::string& text) { return parse_endpoint(text).has_value(); };
  address.expected = "IP:PORT such as 127.0.0.1:9760 or [::]:9760";
  in.optional("listen", out.listen, address,
              "address:port of /metrics and health; port 0 picks a free one");
}

core::Result<std::unique_ptr<HttpServer>> HttpServer::start(const HttpConfig& config,
                                                            Handler handler, core::Log& log) {
  const auto endpoint = parse_endpoint(config.listen);
  if (!endpoint) return endpoint.error();
  auto impl = std::make_unique<Impl>(std::move(handler), log);
  beast::error_code error;
  impl->acceptor.open(endpoint->protocol(), error);
  if (!error) impl->acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) impl->acceptor.bind(*endpoint, error);
  if (!error) impl->acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) return core::unavailable("cannot listen on " + config.listen + ": " + error.message());
  const auto local = impl->acceptor.local_endpoint(error);
  impl->address = (local.address().is_v6() ? "[" + local.address().to_string() + "]"
                                           : local.address().to_string()) +
                  ":" + std::to_string(local.port());
  impl->accept();
  impl->thread = std::jthread([io = &impl->io] { io->run(); });
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() { impl_->io.stop(); }
const std::string& HttpServer::address() const noexcept { return impl_->address; }

}  // namespace tocsin::app
