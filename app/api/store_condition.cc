#include "app/api/store_condition.h"

#include <filesystem>
#include <system_error>
#include <utility>

namespace tocsin::app {

using core::Value;
using core::ValueMap;

StoreCondition::StoreCondition(std::string_view store, std::string_view begun_anew,
                               const core::Clock& clock, core::Log& log, Teller tell)
    : store_(store), begun_anew_(begun_anew), clock_(clock), log_(log), tell_(std::move(tell)) {}

void StoreCondition::is_written() { stands("ok", ""); }

void StoreCondition::stopped(const core::Error& why) {
  stands(why.code == core::Code::resource_exhausted ? "full" : "stopped", why.message);
}

void StoreCondition::stands(std::string_view state, const std::string& trouble) {
  Value news;
  {
    const core::MutexLock lock(mutex_);
    const bool deleted = set_aside_ && !is_there(*set_aside_);
    if (state_ == state && trouble_ == trouble && !deleted) return;
    state_ = state;
    trouble_ = trouble;
    if (deleted) set_aside_.reset();
    news = value_now();
  }
  tell_(news);
}

void StoreCondition::condemn_file(std::uint64_t file, const std::string& why) {
  const core::MutexLock lock(mutex_);
  if (file == file_ && condemned_.empty()) condemned_ = why;
}

void StoreCondition::condemn(const std::string& why) {
  const core::MutexLock lock(mutex_);
  if (condemned_.empty()) condemned_ = why;
}

std::string StoreCondition::condemned() const {
  const core::MutexLock lock(mutex_);
  return condemned_;
}

void StoreCondition::opened(const std::string& path, const insights::SetAside& moved) {
  if (moved.why.empty()) return;
  const bool gone = !moved.moved_to.empty();
  log_.warn(begun_anew_, {{"store", path},
                          {"moved_to", moved.moved_to},
                          {"replaced", moved.replaced},
                          {"error", moved.why}});
  if (!gone) return;
  Value news;
  {
    const core::MutexLock lock(mutex_);
    ++file_;
    condemned_.clear();
    set_aside_ = Kept{moved, clock_.now()};
    news = value_now();
  }
  tell_(news);
}

insights::DamageHook StoreCondition::hook_of_reader() {
  const core::MutexLock lock(mutex_);
  return [this, file = file_](const std::string& why) { condemn_file(file, why); };
}

std::string StoreCondition::trouble() const {
  const core::MutexLock lock(mutex_);
  return trouble_;
}

bool StoreCondition::is_there(const Kept& aside) {
  std::error_code unknown;
  return std::filesystem::exists(aside.file.moved_to, unknown);
}

core::Value StoreCondition::value() const {
  const core::MutexLock lock(mutex_);
  return value_now();
}

core::Value StoreCondition::value_now() const {
  Value aside;
  if (set_aside_ && is_there(*set_aside_))
    aside = ValueMap{{"time", core::to_rfc3339(set_aside_->at)},
                     {"file", set_aside_->file.moved_to},
                     {"damaged", set_aside_->file.damaged},
                     {"reason", set_aside_->file.why}};
  return ValueMap{{"store", store_},
                  {"state", state_},
                  {"reason", trouble_.empty() ? Value() : Value(trouble_)},
                  {"set_aside", std::move(aside)}};
}

}  // namespace tocsin::app
