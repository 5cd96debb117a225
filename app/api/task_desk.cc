#include "app/api/task_desk.h"

#include <algorithm>
#include <utility>

#include "core/time.h"

namespace tocsin::app {

TaskDesk::~TaskDesk() {
  std::list<Task> tasks;
  {
    const core::MutexLock lock(mutex_);
    tasks.swap(tasks_);  // places of tasks do not change by that
  }
  for (Task& task : tasks) task.thread.request_stop();
  for (Task& task : tasks) task.thread.join();
}

TaskDesk::Task* TaskDesk::find(const std::string& id) {
  const auto found =
      std::find_if(tasks_.begin(), tasks_.end(), [&](const Task& one) { return one.id == id; });
  return found == tasks_.end() ? nullptr : &*found;
}

void TaskDesk::forget_old() {
  for (auto one = tasks_.begin(); one != tasks_.end() && tasks_.size() >= kMostKept;) {
    if (one->state == State::running) {
      ++one;
      continue;
    }
    one->thread.join();  // it has said its last word
    one = tasks_.erase(one);
  }
}

core::Result<std::string> TaskDesk::begin(Begun what, Work work) {
  const core::MutexLock lock(mutex_);
  const auto running = static_cast<std::size_t>(std::count_if(
      tasks_.begin(), tasks_.end(), [](const Task& one) { return one.state == State::running; }));
  if (running >= std::max<std::size_t>(1, most_)) {
    return core::Error{core::Code::resource_exhausted,
                       std::to_string(running) + (running == 1 ? " task works" : " tasks work") +
                           " already, as many as may (insights.replays); ask again when one has "
                           "ended, or cancel one"};
  }
  forget_old();
  Task& task = tasks_.emplace_back();
  task.began = clock_.now();
  task.id = "task-" + std::to_string(core::nanoseconds(task.began) / 1'000'000) + "-" +
            std::to_string(++count_);
  task.what = std::move(what);
  task.thread = std::jthread([this, &task, work = std::move(work)](const std::stop_token& stop) {
    TaskWork said(stop, task.progress);
    auto result = work(said);
    ended(task, std::move(result), stop.stop_requested());
  });
  return task.id;
}

void TaskDesk::ended(Task& task, core::Result<core::Value> result, bool cancelled) {
  const core::MutexLock lock(mutex_);
  task.ended = clock_.now();
  if (cancelled) {
    task.state = State::cancelled;
  } else if (result) {
    task.state = State::done;
    task.progress = 1;
    task.result = std::move(*result);
  } else {
    task.state = State::failed;
    task.error = result.error().message;
  }
}

std::optional<core::Value> TaskDesk::told(const std::string& id) {
  const core::MutexLock lock(mutex_);
  const Task* task = find(id);
  if (task == nullptr) return std::nullopt;
  const char* state = task->state == State::running  ? "running"
                      : task->state == State::done   ? "done"
                      : task->state == State::failed ? "failed"
                                                     : "cancelled";
  const bool over = task->state != State::running;
  return core::ValueMap{
      {"id", task->id},
      {"kind", task->what.kind},
      {"run", task->what.run},
      {"by", task->what.by},
      {"state", state},
      {"progress", task->progress.load(std::memory_order_relaxed)},
      {"began_at", core::to_rfc3339(task->began)},
      {"ended_at", over ? core::Value(core::to_rfc3339(task->ended)) : core::Value()},
      {"result", task->result},
      {"error", task->error.empty() ? core::Value() : core::Value(task->error)}};
}

bool TaskDesk::cancel(const std::string& id) {
  const core::MutexLock lock(mutex_);
  Task* task = find(id);
  if (task == nullptr) return false;
  task->thread.request_stop();
  return true;
}

}  // namespace tocsin::app
