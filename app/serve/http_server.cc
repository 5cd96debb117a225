#include "app/serve/http_server.h"

#include <utility>  // boost 1.74's asio/awaitable.hpp needs it first

#include <boost/asio/dispatch.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <list>
#include <optional>
#include <thread>

#include "app/process/descriptor_limit.h"
#include "app/process/port_holder.h"

namespace tocsin::app {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;

constexpr auto kFirstRequest =
    std::chrono::seconds(10);                            // from the connection to its whole request
constexpr auto kNextRequest = std::chrono::seconds(30);  // of a connection that is kept alive
constexpr auto kAnswer = std::chrono::seconds(30);       // until the client has taken it
constexpr auto kNoRoom = std::chrono::milliseconds(100);  // before the next try to accept
constexpr std::size_t kMostConnections = 128;
constexpr std::size_t kTellEvery = 600;                // failures to accept: a minute of them
constexpr std::size_t kMaxRequestBytes = 1024 * 1024;  // a batch of alerts
constexpr std::size_t kWorkers = 2;                    // of requests that may wait
constexpr std::size_t kMostWaiting = 64;               // of these at a time

using BeastRequest = http::request<http::string_body>;

std::string_view borrowed(beast::string_view text) { return {text.data(), text.size()}; }

HttpRequest request_of(const BeastRequest& request, std::string_view client) {
  const std::string_view target = borrowed(request.target());
  const std::size_t mark = std::min(target.find('?'), target.size());
  HttpRequest out{borrowed(request.method_string()), target.substr(0, mark),
                  target.substr(std::min(mark + 1, target.size())), request.body(), client};
  for (const auto& field : request) {
    out.headers.emplace_back(borrowed(field.name_string()), borrowed(field.value()));
  }
  return out;
}

/// The routes, and the threads for those that may wait.
class Answers {
 public:
  explicit Answers(HttpRoutes routes) : routes_(std::move(routes)) {}

  /// Calls `done` with the answer, at once or on another thread. False: too many wait already.
  template <typename Done>
  bool answer(HttpRequest request, Done done) {
    if (!routes_.may_wait(request)) {
      done(routes_.answer(std::move(request)));
      return true;
    }
    if (waiting_.fetch_add(1) >= kMostWaiting) {
      waiting_.fetch_sub(1);
      return false;
    }
    asio::post(workers_, [this, request = std::move(request), done = std::move(done)]() mutable {
      HttpResponse made = routes_.answer(std::move(request));
      waiting_.fetch_sub(1);
      done(std::move(made));
    });
    return true;
  }
  /// Waits for the answers that are being made; those that have not begun are left out.
  void stop() {
    workers_.stop();
    workers_.join();
  }

 private:
  HttpRoutes routes_;
  std::atomic<std::size_t> waiting_{0};
  asio::thread_pool workers_{kWorkers};
};

class Session;

/// The open connections. A client that opens many and asks for nothing must not take descriptors
/// from the stages, so their number is bounded: the one that has waited longest for its request goes.
class Connections {
 public:
  using Place = std::list<Session*>::iterator;

  explicit Connections(std::size_t most) : most_(most) {}

  [[nodiscard]] bool full() const { return open_ >= most_; }
  /// A session opens, asks, is answered, and is gone.
  Place waits(Session& session) { return waiting_.insert(waiting_.end(), &session); }
  void asks(Place place) { waiting_.erase(place); }
  void opened() { ++open_; }
  void gone() { --open_; }
  /// Closes the one that has waited longest. False: none waits, all are being answered.
  bool close_oldest();

 private:
  std::size_t most_;
  std::size_t open_ = 0;
  std::list<Session*> waiting_;  // oldest first
};

// One connection: reads a request, answers, and again while kept alive.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, Answers& answers, Connections& all)
      : stream_(std::move(socket)), answers_(answers), all_(all) {
    beast::error_code error;
    const auto peer = stream_.socket().remote_endpoint(error);
    if (!error) client_ = peer.address().to_string();
    all_.opened();
  }
  ~Session() {
    stop_waiting();
    all_.gone();
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void read(std::chrono::seconds deadline) {
    parser_.emplace();
    parser_->body_limit(kMaxRequestBytes);
    stream_.expires_after(deadline);  // for the whole request, however slowly it comes
    waiting_ = all_.waits(*this);
    http::async_read(stream_, buffer_, *parser_,
                     [self = shared_from_this()](beast::error_code error, std::size_t) {
                       self->stop_waiting();
                       if (!error) self->answer();
                     });
  }

  void close() {
    stop_waiting();
    stream_.close();
  }

 private:
  void stop_waiting() {
    if (waiting_) all_.asks(*waiting_);
    waiting_.reset();
  }

  void answer() {
    stream_.expires_never();  // while the answer is made
    const bool taken = answers_.answer(
        request_of(parser_->get(), client_), [self = shared_from_this()](HttpResponse made) {
          asio::dispatch(self->stream_.get_executor(), [self, made = std::move(made)]() mutable {
            self->write(std::move(made));
          });
        });
    if (!taken) {
      write({503,
             "text/plain; charset=utf-8",
             "too many requests wait; try again\n",
             {{"Retry-After", "1"}}});
    }
  }

  void write(HttpResponse made) {
    const auto& request = parser_->get();
    response_ = {};
    response_.version(request.version());
    response_.result(static_cast<unsigned>(made.status));
    response_.set(http::field::content_type, made.content_type);
    for (const auto& header : made.headers) response_.set(header.first, header.second);
    response_.keep_alive(request.keep_alive());
    response_.content_length(made.body.size());
    if (request.method() != http::verb::head) response_.body() = std::move(made.body);
    stream_.expires_after(kAnswer);
    http::async_write(stream_, response_,
                      [self = shared_from_this()](beast::error_code error, std::size_t) {
                        if (!error && self->response_.keep_alive()) return self->read(kNextRequest);
                        beast::error_code ignored;
                        self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
                      });
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_{kMaxRequestBytes};
  Answers& answers_;
  Connections& all_;
  std::string client_;                         // address of the other end
  std::optional<Connections::Place> waiting_;  // while its request is not there
  std::optional<http::request_parser<http::string_body>> parser_;
  http::response<http::string_body> response_;
};

bool Connections::close_oldest() {
  if (waiting_.empty()) return false;
  waiting_.front()->close();
  return true;
}

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
  Impl(HttpRoutes routes, core::Log& l, std::size_t most)
      : log(l), connections(most), answers(std::move(routes)) {}

  void accept() {
    acceptor.async_accept([this](beast::error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (error) return retry(error);
      // A closed session lives until its handlers have run: it counts until then, and one may come.
      if (connections.full() && !connections.close_oldest()) {
        refuse(std::move(socket));
      } else {
        std::make_shared<Session>(std::move(socket), answers, connections)->read(kFirstRequest);
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
  Connections connections;  // before io: sessions that io still holds report to it
  std::size_t failures = 0;
  asio::io_context io{1};
  tcp::acceptor acceptor{io};
  asio::steady_timer pause{io};
  std::string address;
  Answers answers;      // after io: sessions that wait here for an answer use it
  std::jthread thread;  // last: it is joined before what it uses goes away
};

void read(config::Reader& in, HttpConfig& out) {
  config::Check<std::string> address;
  address.ok = [](const std::string& text) { return parse_endpoint(text).has_value(); };
  address.expected = "IP:PORT such as 127.0.0.1:9760 or [::]:9760";
  in.optional("listen", out.listen, address,
              "address:port of /metrics, health and the API; port 0 picks a free one");
  read(in, out.access);
}

core::Result<std::unique_ptr<HttpServer>> HttpServer::start(const HttpConfig& config,
                                                            HttpRoutes routes, core::Log& log) {
  const auto endpoint = parse_endpoint(config.listen);
  if (!endpoint) return endpoint.error();
  auto impl = std::make_unique<Impl>(std::move(routes), log, bounded_share());
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
