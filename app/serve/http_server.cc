#include "app/serve/http_server.h"

#include <utility>  // boost 1.74's asio/awaitable.hpp needs it first

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>

#include <algorithm>
#include <charconv>
#include <thread>

#include "app/process/descriptor_limit.h"
#include "app/process/port_holder.h"
#include "app/serve/http_answers.h"
#include "app/serve/http_connections.h"
#include "app/serve/http_session.h"
#include "app/serve/tls_context.h"

namespace tocsin::app {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;

constexpr auto kNoRoom = std::chrono::milliseconds(100);  // before the next try to accept
constexpr std::size_t kMostConnections = 128;
constexpr std::size_t kTellEvery = 600;  // failures to accept: a minute of them

// Best effort: who does not read it finds the connection closed.
void refuse(tcp::socket socket) {
  constexpr std::string_view kBusy =
      "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\n"
      "Connection: close\r\n\r\n";
  beast::error_code ignored;
  socket.non_blocking(true, ignored);
  socket.write_some(asio::buffer(kBusy), ignored);
}

// A quarter of the descriptors at most: stages and their transport need the others.
std::size_t bounded_share() {
  const auto share = static_cast<std::size_t>(std::max<std::uint64_t>(1, descriptor_limit() / 4));
  return std::min(kMostConnections, share);
}

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

core::Error cannot_listen(const std::string& listen, std::uint16_t port,
                          const beast::error_code& error) {
  std::string text = "cannot listen on " + listen + ": " + error.message();
  if (error == asio::error::address_in_use) {
    if (const std::string holder = port_holder(port); !holder.empty()) text += " by " + holder;
    text += "; end that process, or choose another http.listen (--web.listen-address)";
  }
  return {core::Code::failed_precondition, text};
}

}  // namespace

struct HttpServer::Impl {
  Impl(HttpRoutes routes, std::unique_ptr<TlsContext> context, core::Log& l, std::size_t most)
      : log(l), tls(std::move(context)), connections(most), answers(std::move(routes)) {}

  void accept() {
    acceptor.async_accept([this](beast::error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (error) return retry(error);
      // A closed session lives until its handlers have run: it counts until then, and one may come.
      if (connections.full() && !connections.close_oldest()) {
        refuse(std::move(socket));
      } else {
        serve_connection(std::move(socket), tls ? tls->current() : nullptr, answers, connections);
      }
      accept();
    });
  }

  // No descriptor is left, most likely: trying again at once would take a whole core.
  void retry(const beast::error_code& error) {
    if (failures++ % kTellEvery == 0) log.warn("http_not_accepted", {{"error", error.message()}});
    connections.close_oldest();
    pause.expires_after(kNoRoom);
    pause.async_wait([this](beast::error_code stopped) {
      if (!stopped) accept();
    });
  }

  core::Log& log;
  std::unique_ptr<TlsContext> tls;  // null: in clear
  HttpConnections connections;      // before io: sessions that io still holds report to it
  std::size_t failures = 0;
  asio::io_context io{1};
  tcp::acceptor acceptor{io};
  asio::steady_timer pause{io};
  std::string address;
  HttpAnswers answers;  // after io: sessions that wait here for an answer use it
  std::jthread thread;  // last: it is joined before what it uses goes away
};

core::Status check_listen_address(const std::string& listen) {
  const auto parsed = parse_endpoint(listen);
  return parsed ? core::ok() : core::Status(parsed.error());
}

core::Result<std::unique_ptr<HttpServer>> HttpServer::start(const HttpConfig& config,
                                                            HttpRoutes routes, core::Log& log) {
  const auto endpoint = parse_endpoint(config.listen);
  if (!endpoint) return endpoint.error();
  std::unique_ptr<TlsContext> tls;
  if (config.tls) {
    auto loaded = TlsContext::load(*config.tls, log);
    if (!loaded) return loaded.error();
    tls = std::move(*loaded);
  }
  auto impl = std::make_unique<Impl>(std::move(routes), std::move(tls), log, bounded_share());
  beast::error_code error;
  impl->acceptor.open(endpoint->protocol(), error);
  if (!error) impl->acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) impl->acceptor.bind(*endpoint, error);
  if (!error) impl->acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) return cannot_listen(config.listen, endpoint->port(), error);
  const auto local = impl->acceptor.local_endpoint(error);
  impl->address = (local.address().is_v6() ? "[" + local.address().to_string() + "]"
                                           : local.address().to_string()) +
                  ":" + std::to_string(local.port());
  impl->accept();
  impl->thread = std::jthread([io = &impl->io] { io->run(); });
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() {
  impl_->io.stop();
  impl_->answers.stop();
}
const std::string& HttpServer::address() const noexcept { return impl_->address; }

}  // namespace tocsin::app
