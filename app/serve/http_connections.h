// The open connections of the HTTP server. Internal to serve.
#pragma once

#include <cstddef>
#include <list>

namespace tocsin::app {

class OpenConnection {
 public:
  OpenConnection() = default;
  OpenConnection(const OpenConnection&) = delete;
  OpenConnection& operator=(const OpenConnection&) = delete;
  virtual ~OpenConnection() = default;
  virtual void close() = 0;
};

/// A client that opens many connections and asks for nothing must not take descriptors from the
/// stages, so their number is bounded: the one that has waited longest for its request goes. Streams
/// are counted by who gives them. Belongs to the io thread.
class HttpConnections {
 public:
  using Place = std::list<OpenConnection*>::iterator;

  explicit HttpConnections(std::size_t most) : most_(most) {}

  [[nodiscard]] bool full() const { return open_ >= most_; }
  /// A connection opens, waits for its request, asks, is answered, and is gone.
  void opened() { ++open_; }
  Place waits(OpenConnection& connection) { return waiting_.insert(waiting_.end(), &connection); }
  void asks(Place place) { waiting_.erase(place); }
  void gone() { --open_; }
  /// Closes the one that has waited longest. False: none waits, all are being answered.
  bool close_oldest() {
    if (waiting_.empty()) return false;
    waiting_.front()->close();
    return true;
  }

 private:
  std::size_t most_;
  std::size_t open_ = 0;
  std::list<OpenConnection*> waiting_;  // oldest first
};

}  // namespace tocsin::app
