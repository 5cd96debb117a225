#include "routing/tables/notification_log.h"

#include <algorithm>

#include "routing/tables/state_codec.h"

namespace tocsin::routing {

using core::Status;
using core::WallTime;

namespace {

constexpr std::size_t kHashLength = 64;

std::string log_record_key(const std::string& group, const std::string& integration) {
  return "log/" + group + "/" + integration;
}

}  // namespace

bool told_in(const GroupLogs& logs, std::string_view issue_key) {
  return std::any_of(logs.begin(), logs.end(), [&](const auto& entry) {
    return entry.second.told.count(issue_key) > 0 || entry.second.owed.count(issue_key) > 0;
  });
}

bool concerns(const GroupLogs& logs, std::string_view issue_key, std::uint64_t episode) {
  return std::any_of(logs.begin(), logs.end(), [&](const auto& entry) {
    const auto told = entry.second.told.find(issue_key);
    if (told != entry.second.told.end() && told->second.episode == episode) return true;
    const auto owed = entry.second.owed.find(issue_key);
    return owed != entry.second.owed.end() && owed->second.episode == episode;
  });
}

void NotificationLog::count(const std::string& integration, const TellLog& log) {
  if (!log.owed.empty()) add_to(owed_to_, integration, log.owed.size());
  owed_ += log.owed.size();
  for (const auto& one : log.pending) undelivered_.insert(one.decided_at);
}

void NotificationLog::discount(const std::string& integration, const TellLog& log) {
  if (!log.owed.empty()) owed_to_[integration] -= log.owed.size();
  owed_ -= log.owed.size();
  for (const auto& one : log.pending) undelivered_.erase(undelivered_.find(one.decided_at));
}

void NotificationLog::show(EachFigure each) const {
  routing::show(owed_to_,
                {"tocsin_router_owed_resolves",
                 "resolves that wait for the end of a suppression",
                 "integration",
                 {},
                 0,
                 false},
                each);
}

void NotificationLog::change(const std::string& group, const std::string& integration,
                             core::FunctionRef<bool(TellLog&)> edit) {
  GroupLogs& logs = logs_[group];
  const auto [found, fresh] = logs.try_emplace(integration);
  TellLog& log = found->second;
  discount(integration, log);
  const bool changed = edit(log);
  count(integration, log);
  if (changed) {
    changed_.insert({group, integration});
  } else if (fresh) {
    logs.erase(found);
  }
}

std::optional<Settled> NotificationLog::settle(const std::string& group,
                                               const core::Delivery& delivery) {
  const auto logs = logs_.find(group);
  if (logs == logs_.end() || logs->second.count(delivery.integration) == 0) return std::nullopt;
  std::optional<Settled> out;
  change(group, delivery.integration, [&](TellLog& log) {
    out = routing::settle(log, delivery);
    return out->changed;
  });
  return out;
}

void NotificationLog::forget_group(const std::string& group) {
  const auto found = logs_.find(group);
  if (found == logs_.end()) return;
  for (const auto& [integration, log] : found->second) {
    discount(integration, log);
    changed_.insert({group, integration});
  }
  found->second.clear();
}

void NotificationLog::drop_group(const std::string& group) {
  forget_group(group);
  logs_.erase(group);
}

std::optional<WallTime> NotificationLog::oldest_undelivered() const {
  if (undelivered_.empty()) return std::nullopt;
  return *undelivered_.begin();
}

Status NotificationLog::restore(std::string_view rest, std::string_view value) {
  if (rest.size() < kHashLength + 2 || rest[kHashLength] != '/') {
    return core::Error{core::Code::data_loss, "key without group and integration"};
  }
  auto log = decode_log(value);
  if (!log) return log.error();
  const std::string integration(rest.substr(kHashLength + 1));
  TellLog& kept = logs_[std::string(rest.substr(0, kHashLength))][integration];
  discount(integration, kept);
  kept = std::move(*log);
  count(integration, kept);
  return core::ok();
}

void NotificationLog::restored(core::FunctionRef<bool(const std::string&)> is_there) {
  std::vector<std::string> gone;
  for (const auto& [group, logs] : logs_) {
    if (!is_there(group)) gone.push_back(group);
  }
  for (const std::string& group : gone) drop_group(group);
}

void NotificationLog::take(std::vector<StateRecord>& out) {
  for (const auto& [group, integration] : std::exchange(changed_, {})) {
    StateRecord record{log_record_key(group, integration), std::nullopt};
    if (const auto logs = logs_.find(group); logs != logs_.end()) {
      const auto log = logs->second.find(integration);
      if (log != logs->second.end()) record.value = encode(log->second);
    }
    out.push_back(std::move(record));
  }
}

void NotificationLog::snapshot(std::vector<StateRecord>& out) const {
  for (const auto& [group, logs] : logs_) {
    for (const auto& [integration, log] : logs) {
      out.push_back({log_record_key(group, integration), encode(log)});
    }
  }
}

}  // namespace tocsin::routing
