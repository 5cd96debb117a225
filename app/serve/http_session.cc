#include "app/serve/http_session.h"

#include <boost/asio/dispatch.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/core/detect_ssl.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "app/serve/tls_context.h"

namespace tocsin::app {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;

constexpr auto kFirstRequest =
    std::chrono::seconds(10);  // from the connection to its whole request, a handshake included
constexpr auto kNextRequest = std::chrono::seconds(30);  // of a connection that is kept alive
constexpr auto kAnswer = std::chrono::seconds(30);       // until the client has taken it
constexpr auto kFarewell = std::chrono::seconds(5);      // of TLS
constexpr std::size_t kMaxRequestBytes = 1024 * 1024;    // a batch of alerts

using BeastRequest = http::request<http::string_body>;
using TlsStream = beast::ssl_stream<beast::tcp_stream>;

constexpr std::string_view kSpeaksTls =
    "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 43\r\n"
    "Connection: close\r\n\r\nthis port speaks TLS: ask with https://...\n";

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

// What is answered to a request that cannot be read; 0: the connection just ends.
int status_of(const beast::error_code& error) {
  if (error == http::error::body_limit) return 413;
  if (error == http::error::header_limit) return 431;
  if (error == http::error::end_of_stream || error == http::error::partial_message) return 0;
  return error.category() == http::make_error_code(http::error::bad_method).category() ? 400 : 0;
}

beast::tcp_stream& lowest(beast::tcp_stream& stream) { return stream; }
beast::tcp_stream& lowest(TlsStream& stream) { return stream.next_layer(); }

// Reads a request, answers, and again while kept alive.
template <typename Stream>
class Session final : public OpenConnection, public std::enable_shared_from_this<Session<Stream>> {
  static constexpr bool kTls = std::is_same_v<Stream, TlsStream>;

 public:
  template <typename... Made>
  Session(std::shared_ptr<asio::ssl::context> tls, HttpAnswers& answers, HttpConnections& all,
          Made&&... made)
      : tls_(std::move(tls)),
        stream_(std::forward<Made>(made)...),
        answers_(answers),
        all_(all),
        quiet_(stream_.get_executor()) {
    beast::error_code error;
    const auto peer = lowest(stream_).socket().remote_endpoint(error);
    if (!error) client_ = peer.address().to_string();
    all_.opened();
  }
  ~Session() override {
    stop_waiting();
    stop_counting();
    if (endless_) endless_->detach();
  }

  void start() {
    lowest(stream_).expires_after(kFirstRequest);
    waiting_ = all_.waits(*this);
    if constexpr (kTls) {
      beast::async_detect_ssl(lowest(stream_), buffer_,
                              [self = self()](beast::error_code error, bool speaks_tls) {
                                if (error) return;
                                speaks_tls ? self->shake_hands() : self->say_tls();
                              });
    } else {
      read();
    }
  }

  void close() override {
    stop_waiting();
    lowest(stream_).close();
  }

 private:
  auto self() { return this->shared_from_this(); }

  void stop_waiting() {
    if (waiting_) all_.asks(*waiting_);
    waiting_.reset();
  }
  void stop_counting() {
    if (counted_) all_.gone();
    counted_ = false;
  }

  void shake_hands() {
    if constexpr (kTls) {
      stream_.async_handshake(asio::ssl::stream_base::server, buffer_.data(),
                              [self = self()](beast::error_code error, std::size_t used) {
                                if (error) return;
                                self->buffer_.consume(used);
                                self->certificate_ =
                                    certificate_name(self->stream_.native_handle());
                                self->read();
                              });
    }
  }
  // In clear, to a client that does not know.
  void say_tls() {
    stop_waiting();
    asio::async_write(lowest(stream_), asio::buffer(kSpeaksTls),
                      [self = self()](beast::error_code, std::size_t) { self->shut(); });
  }

  // Within the time that was set: for the whole request, however slowly it comes.
  void read() {
    parser_.emplace();
    parser_->body_limit(kMaxRequestBytes);
    http::async_read(stream_, buffer_, *parser_,
                     [self = self()](beast::error_code error, std::size_t) {
                       self->stop_waiting();
                       if (!error) return self->answer();
                       if (const int status = status_of(error); status != 0) {
                         self->refuse(status, error.message());
                       }
                     });
  }
  void read_next() {
    lowest(stream_).expires_after(kNextRequest);
    waiting_ = all_.waits(*this);
    read();
  }

  void answer() {
    lowest(stream_).expires_never();  // while the answer is made
    HttpRequest request = request_of(parser_->get(), client_);
    request.secure = kTls;
    request.certificate = certificate_;
    const bool taken = answers_.answer(std::move(request), [self = self()](HttpResponse made) {
      asio::dispatch(self->stream_.get_executor(), [self, made = std::move(made)]() mutable {
        self->write(std::move(made), self->parser_->get().keep_alive());
      });
    });
    if (!taken) {
      write({503,
             "text/plain; charset=utf-8",
             "too many requests wait; try again\n",
             {{"Retry-After", "1"}}},
            parser_->get().keep_alive());
    }
  }
  // The rest of what was sent is not read: the connection ends.
  void refuse(int status, const std::string& why) {
    write({status, "text/plain; charset=utf-8",
           (status == 413 ? "a request has at most 1 MiB" : why) + "\n"},
          false);
  }

  void write(HttpResponse made, bool keep_alive) {
    const auto& request = parser_->get();
    if (made.stream && request.method() != http::verb::head) return write_endless(std::move(made));
    response_ = {};
    response_.version(request.version());
    set_head(response_, made);
    response_.keep_alive(keep_alive);
    if (made.status == 204) {  // has no body, and says nothing of one (RFC 9110, 8.6)
      response_.erase(http::field::content_type);
    } else if (!made.stream) {  // of a HEAD: if its length is known, its headers say so
      response_.content_length(made.body.size());
    }
    if (request.method() != http::verb::head) response_.body() = std::move(made.body);
    lowest(stream_).expires_after(kAnswer);
    http::async_write(stream_, response_, [self = self()](beast::error_code error, std::size_t) {
      if (!error && self->response_.keep_alive()) return self->read_next();
      if (!error) self->bid_farewell();
    });
  }
  template <typename Response>
  static void set_head(Response& response, const HttpResponse& made) {
    response.result(static_cast<unsigned>(made.status));
    response.set(http::field::content_type, made.content_type);
    // Not set(): an answer may set several cookies.
    for (const auto& header : made.headers) response.insert(header.first, header.second);
  }

  void bid_farewell() {
    if constexpr (kTls) {
      lowest(stream_).expires_after(kFarewell);
      stream_.async_shutdown([self = self()](beast::error_code) { self->shut(); });
    } else {
      shut();
    }
  }
  void shut() {
    beast::error_code ignored;
    lowest(stream_).socket().shutdown(tcp::socket::shutdown_send, ignored);
  }

  // A body of pieces: one piece after the other, until one of both ends has enough.
  void write_endless(HttpResponse made) {
    stop_counting();
    endless_ = std::move(made.stream);
    const bool counted = std::any_of(
        made.headers.begin(), made.headers.end(),
        [](const auto& header) { return beast::iequals(header.first, "Content-Length"); });
    chunked_ = parser_->get().version() >= 11 && !counted;
    endless_head_.version(parser_->get().version());
    set_head(endless_head_, made);
    endless_head_.keep_alive(false);
    if (!counted) endless_head_.chunked(chunked_);
    endless_writer_.emplace(endless_head_);
    writing_ = true;
    watch_end();
    lowest(stream_).expires_after(kAnswer);
    http::async_write_header(stream_, *endless_writer_,
                             [self = self()](beast::error_code error, std::size_t) {
                               self->writing_ = false;
                               if (error) return self->close();
                               self->begin_pieces();
                             });
  }
  void begin_pieces() {
    endless_->attach([weak = this->weak_from_this(), executor = stream_.get_executor()] {
      asio::post(executor, [weak] {
        if (const auto self = weak.lock()) self->write_piece();
      });
    });
    write_piece();
    if (!endless_->may_wait()) wait_quiet();
  }
  // Whoever reads a stream sends nothing: what comes is its end.
  void watch_end() {
    lowest(stream_).expires_never();
    stream_.async_read_some(asio::buffer(&unwanted_, 1),
                            [self = self()](beast::error_code, std::size_t) {
                              self->quiet_.cancel();
                              self->close();
                            });
  }
  void wait_quiet() {
    quiet_.expires_after(endless_->idle_after());
    quiet_.async_wait([weak = this->weak_from_this()](beast::error_code stopped) {
      const auto self = weak.lock();
      if (stopped || !self) return;
      if (!self->writing_ && !self->wrote_)
        self->send_piece({self->endless_->idle(), self->endless_->ends_idle()});
      self->wrote_ = false;
      self->wait_quiet();
    });
  }
  void write_piece() {
    if (writing_ || ended_) return;
    if (endless_->may_wait()) return take_elsewhere();
    HttpStream::Piece piece = endless_->take();
    if (!piece.text.empty() || piece.last) send_piece(std::move(piece));
  }
  // It comes back here before anything of this connection can go.
  void take_elsewhere() {
    writing_ = true;
    answers_.later([self = self()]() mutable {
      HttpStream::Piece piece = self->endless_->take();
      const auto executor = self->stream_.get_executor();
      asio::post(executor, [self = std::move(self), piece = std::move(piece)]() mutable {
        self->send_piece(std::move(piece));
      });
    });
  }
  void send_piece(HttpStream::Piece piece) {
    if (piece.torn) return close();
    writing_ = wrote_ = true;
    ended_ = piece.last;
    piece_ = std::move(piece.text);
    if (chunked_) {
      char size[24];
      const int length = std::snprintf(size, sizeof size, "%zx\r\n", piece_.size());
      piece_ = piece_.empty()
                   ? ""
                   : std::string(size, static_cast<std::size_t>(length)) + piece_ + "\r\n";
      if (ended_) piece_ += "0\r\n\r\n";
    }
    lowest(stream_).expires_after(kAnswer);
    asio::async_write(stream_, asio::buffer(piece_),
                      [self = self()](beast::error_code error, std::size_t) {
                        self->writing_ = false;
                        if (error || self->ended_) return self->close();
                        self->write_piece();
                      });
  }

  std::shared_ptr<asio::ssl::context> tls_;  // before the stream, which needs it
  Stream stream_;
  beast::flat_buffer buffer_{kMaxRequestBytes};
  HttpAnswers& answers_;
  HttpConnections& all_;
  std::string client_;       // address of the other end
  std::string certificate_;  // name in the one that it has shown
  bool counted_ = true;
  std::optional<HttpConnections::Place> waiting_;  // while its request is not there
  std::optional<http::request_parser<http::string_body>> parser_;
  http::response<http::string_body> response_;

  std::shared_ptr<HttpStream> endless_;
  http::response<http::empty_body> endless_head_;
  std::optional<http::response_serializer<http::empty_body>> endless_writer_;
  asio::steady_timer quiet_;
  std::string piece_;  // on its way
  char unwanted_ = 0;
  bool chunked_ = false;
  bool writing_ = false;
  bool wrote_ = false;  // since the last look of quiet_
  bool ended_ = false;
};

}  // namespace

void serve_connection(tcp::socket socket, std::shared_ptr<asio::ssl::context> tls,
                      HttpAnswers& answers, HttpConnections& connections) {
  if (tls) {
    asio::ssl::context& context = *tls;
    std::make_shared<Session<TlsStream>>(std::move(tls), answers, connections, std::move(socket),
                                         context)
        ->start();
  } else {
    std::make_shared<Session<beast::tcp_stream>>(nullptr, answers, connections, std::move(socket))
        ->start();
  }
}

}  // namespace tocsin::app
