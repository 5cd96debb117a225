// A far side that is asked several times in one attempt: answers in turn, and what was asked.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/unit/actions/fixtures.h"

namespace tocsin::actions::testing_support {

/// One action, and the requests that it makes.
struct TalkBench : Workbench {
  TalkBench(const std::string& type, const std::string& settings) : action(make(type, settings)) {}

  void answer(int status, const std::string& body,
              std::vector<std::pair<std::string, std::string>> headers = {}) {
    http.answers.push_back({HttpFailure::none, "", {status, std::move(headers), body}});
  }
  core::AttemptOutcome told(core::Notification notification) {
    notification.group_hash = kHash;
    return deliver(*action, std::move(notification));
  }
  /// "GET /api/x" of each request so far.
  [[nodiscard]] std::vector<std::string> asked() const {
    std::vector<std::string> out;
    for (const HttpRequest& request : http.requests) {
      out.push_back(request.method + " " + request.url.substr(request.url.find('/', 8)));
    }
    return out;
  }
  [[nodiscard]] nlohmann::json last() const {
    return nlohmann::json::parse(http.requests.back().body);
  }
  [[nodiscard]] std::string header(const std::string& name) const {
    for (const auto& [key, value] : http.requests.back().headers) {
      if (key == name) return value;
    }
    return {};
  }

  static constexpr char kHash[] =
      "a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f90";
  std::unique_ptr<core::Action> action;
};

inline core::Notification told_as(core::NotificationKind kind, const std::string& id,
                                  std::vector<std::pair<std::string, std::string>> handles = {}) {
  core::Notification out = sample_notification(id, kind);
  if (kind == core::NotificationKind::update) out.reason = "new_issues";
  out.handles = std::move(handles);
  return out;
}

}  // namespace tocsin::actions::testing_support
