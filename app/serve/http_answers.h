// The routes, and the threads for those that may wait. Internal to serve.
#pragma once

#include <utility>  // boost 1.74's asio/awaitable.hpp needs it first

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>

#include <atomic>
#include <cstddef>

#include "app/serve/http_routes.h"

namespace tocsin::app {

class HttpAnswers {
 public:
  static constexpr std::size_t kWorkers = 2;       // of requests that may wait
  static constexpr std::size_t kMostWaiting = 64;  // of these at a time

  explicit HttpAnswers(HttpRoutes routes) : routes_(std::move(routes)) {}

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
    boost::asio::post(workers_,
                      [this, request = std::move(request), done = std::move(done)]() mutable {
                        HttpResponse made = routes_.answer(std::move(request));
                        waiting_.fetch_sub(1);
                        done(std::move(made));
                      });
    return true;
  }
  /// Does this on a thread that may wait, behind what is waiting.
  template <typename Work>
  void later(Work work) {
    boost::asio::post(workers_, std::move(work));
  }
  /// Waits for the answers that are being made; those that have not begun are left out.
  void stop() {
    workers_.stop();
    workers_.join();
  }

 private:
  HttpRoutes routes_;
  std::atomic<std::size_t> waiting_{0};
  boost::asio::thread_pool workers_{kWorkers};
};

}  // namespace tocsin::app
