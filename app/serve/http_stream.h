// A body that is sent as it is made, such as a stream of events or a long table: the connection asks
// for the next piece.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace tocsin::app {

/// One reader of a stream. take() and idle() are called by the io thread and never wait, but take()
/// where may_wait(). No `wake` is called after detach() has returned.
class HttpStream {
 public:
  struct Piece {
    std::string text;   // empty: nothing to send at present
    bool last = false;  // the connection is closed behind it
    bool torn = false;  // what was sent is not whole: it is closed so that the client sees that
  };

  HttpStream() = default;
  HttpStream(const HttpStream&) = delete;
  HttpStream& operator=(const HttpStream&) = delete;
  virtual ~HttpStream() = default;

  /// `wake` may be called by any thread when there is something to take; it only posts.
  virtual void attach(std::function<void()> wake) = 0;
  virtual void detach() = 0;
  virtual Piece take() = 0;
  /// Whether take() reads files: a thread of answers calls it then, one call at a time, and it always
  /// has something.
  [[nodiscard]] virtual bool may_wait() const { return false; }
  /// What is sent after so long without a piece, so that proxies leave the connection open.
  [[nodiscard]] virtual std::string idle() const = 0;
  /// Whether the connection is closed behind that.
  [[nodiscard]] virtual bool ends_idle() const { return false; }
  [[nodiscard]] virtual std::chrono::milliseconds idle_after() const = 0;
};

}  // namespace tocsin::app
