#include "actions/delivery/delivery_pool.h"

#include <deque>
#include <list>
#include <map>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "core/mutex.h"

namespace tocsin::actions {
namespace {

core::AttemptOutcome failed(core::OutcomeClass what, std::string code, std::string detail) {
  core::AttemptOutcome out;
  out.outcome = what;
  out.code = std::move(code);
  out.detail = std::move(detail);
  return out;
}

}  // namespace

class DeliveryPool::Impl {
 public:
  explicit Impl(PoolOptions options) : options_(std::move(options)) {}

  ~Impl() {
    {
      const core::MutexLock lock(mutex_);
      closing_ = true;
      for (auto& [name, team] : teams_) team.work.notify_all();
    }
    // Outside the lock, which the threads need to end. No new one comes: submit() is over.
    for (auto& [name, team] : teams_) team.threads.clear();
    ended_.clear();
  }

  void submit(Attempt attempt) {
    Threads gone;
    bool announce = false;
    {
      const core::MutexLock lock(mutex_);
      gone.swap(ended_);
      ++in_flight_;
      Team& team = teams_[attempt.integration];
      team.todo.push_back(std::move(attempt));
      if (team.idle >= team.todo.size()) {
        team.work.notify_one();
      } else if (team.threads.empty() || threads_ < options_.max_threads) {
        announce = !hire(team);
      }
    }
    if (announce && options_.on_finished) options_.on_finished();
  }

  std::vector<CallResult> take() {
    const core::MutexLock lock(mutex_);
    in_flight_ -= finished_.size();
    return std::exchange(finished_, {});
  }

  std::size_t in_flight() const {
    const core::MutexLock lock(mutex_);
    return in_flight_;
  }

  std::size_t threads() const {
    const core::MutexLock lock(mutex_);
    return threads_;
  }

 private:
  using Threads = std::list<std::jthread>;

  struct Team {
    std::deque<Attempt> todo;
    core::CondVar work;
    Threads threads;
    std::size_t idle = 0;
  };

  // One thread more; false: the system has none, and nobody else of the team could do the work.
  bool hire(Team& team) REQUIRES(mutex_) {
    const auto place = team.threads.emplace(team.threads.end());
    try {
      *place = std::jthread([this, &team, place] { serve(team, place); });
      ++threads_;
      return true;
    } catch (const std::system_error& error) {
      team.threads.erase(place);
      if (!team.threads.empty()) return true;
      finished_.push_back(
          {std::move(team.todo.back()),
           failed(core::OutcomeClass::transient, "no_thread", error.code().message())});
      team.todo.pop_back();
      return false;
    }
  }

  void serve(Team& team, Threads::iterator self) {
    const core::MutexLock lock(mutex_);
    while (!closing_) {
      if (team.todo.empty()) {
        ++team.idle;
        const bool called = team.work.wait_for(mutex_, options_.idle, [&]() REQUIRES(mutex_) {
          return closing_ || !team.todo.empty();
        });
        --team.idle;
        if (called) continue;
        ended_.splice(ended_.end(), team.threads, self);  // joined by the next submit()
        --threads_;
        return;
      }
      Attempt attempt = std::move(team.todo.front());
      team.todo.pop_front();
      std::optional<core::AttemptOutcome> outcome;
      {
        const core::MutexUnlock unlocked(mutex_);
        outcome = call(attempt);
      }
      finished_.push_back({std::move(attempt), std::move(outcome)});
      if (finished_.size() > 1 || !options_.on_finished) continue;
      const core::MutexUnlock unlocked(mutex_);
      options_.on_finished();
    }
  }

  std::optional<core::AttemptOutcome> call(const Attempt& attempt) const {
    if (options_.gate && !options_.gate()) return std::nullopt;
    core::Action* const action = options_.action(attempt.integration);
    if (action == nullptr) {
      return failed(core::OutcomeClass::gone, "no_integration",
                    "no such integration in this configuration");
    }
    try {
      return action->execute(*attempt.notification, attempt.number, attempt.budget);
    } catch (const std::exception& error) {
      // Nobody knows how far it came: the same id again, or what on_unknown says.
      return failed(core::OutcomeClass::unknown, "exception", error.what());
    }
  }

  PoolOptions options_;
  mutable core::Mutex mutex_;  // guards what is in a team, too
  bool closing_ GUARDED_BY(mutex_) = false;
  std::map<std::string, Team, std::less<>> teams_ GUARDED_BY(mutex_);  // their addresses stay
  std::vector<CallResult> finished_ GUARDED_BY(mutex_);
  std::size_t in_flight_ GUARDED_BY(mutex_) = 0;
  std::size_t threads_ GUARDED_BY(mutex_) = 0;
  Threads ended_ GUARDED_BY(mutex_);
};

DeliveryPool::DeliveryPool(PoolOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}
DeliveryPool::~DeliveryPool() = default;

void DeliveryPool::submit(Attempt attempt) { impl_->submit(std::move(attempt)); }
std::vector<CallResult> DeliveryPool::take() { return impl_->take(); }
std::size_t DeliveryPool::in_flight() const { return impl_->in_flight(); }
std::size_t DeliveryPool::threads() const { return impl_->threads(); }

}  // namespace tocsin::actions
