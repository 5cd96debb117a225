#include "actions/message/json_body.h"

#include <nlohmann/json.hpp>

namespace tocsin::actions {
namespace {

// What is tried before anything happens: one issue, then its end.
core::Notification sample(core::IssueStatus status) {
  core::Notification out;
  out.firing = status == core::IssueStatus::firing;
  out.issues.emplace_back();
  core::Issue& issue = out.issues.front().issue;
  issue.rule = "exploding_tensor";
  issue.summary = "a \"quoted\" sentence";
  issue.status = status;
  issue.step = 412;
  return out;
}

}  // namespace

core::Result<JsonBody> JsonBody::parse(std::string text) {
  auto form = Template::parse(std::move(text), Escape::json);
  if (!form) return form.error();
  for (const std::string& name : form->names()) {
    if (!in_message_view(name)) {
      return core::invalid_argument("a message has no \"" + name + "\"");
    }
  }
  for (const auto status : {core::IssueStatus::firing, core::IssueStatus::resolved}) {
    const auto filled = form->render(message_view(sample(status), {}));
    if (!filled) return filled.error();
    if (!nlohmann::json::accept(*filled)) {
      return core::invalid_argument("is no JSON once it is filled in: " + filled->substr(0, 200));
    }
  }
  return JsonBody(std::move(*form));
}

std::string JsonBody::fill(const core::Notification& notification, const Sender& sender) const {
  auto out = form_.render(message_view(notification, sender));
  if (out && nlohmann::json::accept(*out)) return std::move(*out);
  return native(notification, sender);
}

}  // namespace tocsin::actions
