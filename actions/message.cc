#include "actions/message.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "actions/lane.h"
#include "actions/redact.h"

namespace tocsin::actions {
namespace {

using core::Issue;
using core::IssueStatus;
using core::Notification;

std::string number(double value) {
  std::string text = core::to_json(core::Value{value});
  if (text.size() > 1 && text.front() == '"') text = text.substr(1, text.size() - 2);  // "NaN"
  return text;
}

// "2026-01-02 03:04:05 UTC"
std::string when(core::WallTime time) {
  std::string text = core::to_rfc3339(time).substr(0, 19);
  if (text.size() > 10) text[10] = ' ';
  return text + " UTC";
}

std::string common(const Notification& notification, std::string (*of)(const Issue&),
                   std::string_view several) {
  std::string out;
  for (const auto& notified : notification.issues) {
    std::string one = of(notified.issue);
    if (!out.empty() && one != out) return std::string(several);
    out = std::move(one);
  }
  return out;
}

std::string where(const Issue& issue) {
  std::string out;
  const auto add = [&](const std::string& part) {
    if (!part.empty()) out += (out.empty() ? "" : ", ") + part;
  };
  add(issue.evidence.tensor ? issue.evidence.tensor->name : issue.labels.get("tensor"));
  add(issue.labels.get("metric"));
  add(issue.labels.get("worker"));
  add(issue.labels.get("node"));
  add(issue.labels.get("device"));
  return out;
}

std::string step_text(const Issue& issue) {
  if (!issue.step) return {};
  std::string out = "step " + std::to_string(*issue.step);
  if (issue.mode && *issue.mode != core::Mode::global)
    out += " (" + std::string(to_string(*issue.mode)) + ")";
  if (issue.epoch) out += ", epoch " + std::to_string(*issue.epoch);
  return out;
}

std::string seen(const Issue& issue) {
  const core::Evidence& evidence = issue.evidence;
  if (evidence.observed.name.empty()) return {};
  std::string out = evidence.observed.name + " = " + number(evidence.observed.value);
  if (evidence.threshold) {
    out += "; " + evidence.threshold->name + ": " + (evidence.op.empty() ? "" : evidence.op + " ") +
           number(evidence.threshold->value);
  }
  if (evidence.occurrences > 1) out += "; " + std::to_string(evidence.occurrences) + " times";
  return out;
}

std::string affected(const Issue& issue) {
  const core::Affected& all = issue.evidence.affected;
  if (all.hit < 2) return {};
  return std::to_string(all.hit) + " of " + std::to_string(all.evaluated);
}

using Rows = std::vector<std::pair<std::string, std::string>>;

Rows rows(const Issue& issue) {
  Rows out;
  const auto add = [&](const char* name, std::string value) {
    if (!value.empty()) out.emplace_back(name, printable(value, 2000));
  };
  add("Seen", seen(issue));
  add("Where", where(issue));
  add("Affected", affected(issue));
  add("At", step_text(issue));
  if (issue.starts_at != core::WallTime{}) add("Since", when(issue.starts_at));
  if (issue.status == IssueStatus::resolved && issue.ends_at) {
    add("Until",
        when(*issue.ends_at) + (issue.resolution == core::Resolution::none
                                    ? ""
                                    : " (" + std::string(to_string(issue.resolution)) + ")"));
  }
  add("Run", to_text(issue.run.uid) + ", attempt " + std::to_string(issue.run.attempt) +
                 (issue.run.job.empty() ? "" : ", job " + issue.run.job));
  if (issue.status == IssueStatus::firing) add("What to do", issue.recommendation);
  add("Runbook", issue.runbook_url);
  return out;
}

std::string first_line(const Issue& issue) {
  if (!issue.summary.empty()) return printable(issue.summary, 2000);
  const std::string sentence = evidence_sentence(issue);
  return sentence.empty() ? issue.rule : sentence;
}

std::string tag(const Issue& issue) {
  if (issue.status == IssueStatus::resolved) return "RESOLVED";
  std::string out(to_string(issue.severity));
  for (char& c : out) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return out;
}

std::string more(const Notification& notification, std::size_t shown) {
  const std::uint64_t hidden = notification.truncated + (notification.issues.size() - shown);
  return hidden == 0 ? "" : std::to_string(hidden) + " more are not shown here.";
}

std::size_t shown_of(const Notification& notification) {
  return notification.minimal ? std::min<std::size_t>(1, notification.issues.size())
                              : notification.issues.size();
}

std::string footer(const Notification& notification) {
  return "Sent by Tocsin to receiver " + notification.receiver + " (" + notification.reason +
         "), notification " + notification.notification_id;
}

std::string html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// Links only with schemes that open a page.
std::string html_value(const std::string& value) {
  const bool link = value.starts_with("https://") || value.starts_with("http://");
  const std::string text = html(value);
  return link ? "<a href=\"" + text + "\">" + text + "</a>" : text;
}

const char* colour(const Issue& issue) {
  static constexpr std::array<const char*, 4> kColours{"#1f6feb", "#9a6700", "#cf222e", "#82071e"};
  return issue.status == IssueStatus::resolved ? "#1a7f37"
                                               : kColours[static_cast<std::size_t>(issue.severity)];
}

}  // namespace

std::string headline(const Notification& notification) {
  std::string out = "[RESOLVED]";
  if (notification.firing) {
    out = "[FIRING:" + std::to_string(std::max<std::uint64_t>(notification.firing_count, 1)) + " " +
          std::string(to_string(severity_of(notification))) + "]";
  }
  const std::string rule = common(
      notification, [](const Issue& issue) { return issue.rule; }, "several rules");
  const std::string job = common(
      notification, [](const Issue& issue) { return issue.run.job; }, "several jobs");
  if (notification.reason == "digest") out += " digest:";
  if (!rule.empty()) out += " " + rule;
  if (!job.empty()) out += " " + job;
  return printable(out, 200);
}

std::string evidence_sentence(const Issue& issue) {
  std::string out;
  const core::Evidence& evidence = issue.evidence;
  if (!evidence.observed.name.empty()) {
    out = evidence.observed.name + " is " + number(evidence.observed.value);
    if (evidence.threshold) {
      out += ", " + evidence.threshold->name + " " +
             (evidence.op.empty() ? "" : evidence.op + " ") + number(evidence.threshold->value);
    }
  }
  if (const std::string at = step_text(issue); !at.empty())
    out += (out.empty() ? "at " : ", at ") + at;
  if (const std::string place = where(issue); !place.empty()) out += " in " + place;
  return printable(out, 1000);
}

std::string text_body(const Notification& notification, const Sender& sender) {
  std::string out;
  const std::size_t shown = shown_of(notification);
  for (std::size_t i = 0; i < shown; ++i) {
    const Issue& issue = notification.issues[i].issue;
    out += tag(issue) + "  " + printable(issue.rule, 200) + "\n" + first_line(issue) + "\n\n";
    if (notification.minimal) continue;
    for (const auto& [name, value] : rows(issue)) {
      out += "  " + name + std::string(name.size() < 12 ? 12 - name.size() : 1, ' ') + value + "\n";
    }
    out += "\n";
  }
  if (const std::string hidden = more(notification, shown); !hidden.empty()) out += hidden + "\n\n";
  if (!sender.external_url.empty()) out += sender.external_url + "\n\n";
  return out + "-- \n" + printable(footer(notification), 500) + "\n";
}

std::string html_body(const Notification& notification, const Sender& sender) {
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" +
      html(headline(notification)) +
      "</title></head>\n<body style=\"font-family:sans-serif;color:#1f2328;max-width:44em\">\n";
  const std::size_t shown = shown_of(notification);
  for (std::size_t i = 0; i < shown; ++i) {
    const Issue& issue = notification.issues[i].issue;
    out += "<div style=\"border-left:4px solid " + std::string(colour(issue)) +
           ";padding:0 0 0 1em;margin:0 0 1.5em\">\n<p><b style=\"color:" + colour(issue) + "\">" +
           tag(issue) + "</b> &nbsp;" + html(printable(issue.rule, 200)) +
           "</p>\n<p style=\"font-size:1.15em\">" + html(first_line(issue)) + "</p>\n";
    if (!notification.minimal) {
      out += "<table style=\"border-spacing:0\">\n";
      for (const auto& [name, value] : rows(issue)) {
        out += "<tr><td style=\"color:#656d76;padding:.1em 1.2em .1em 0;vertical-align:top\">" +
               html(name) + "</td><td>" + html_value(value) + "</td></tr>\n";
      }
      out += "</table>\n";
    }
    out += "</div>\n";
  }
  if (const std::string hidden = more(notification, shown); !hidden.empty()) {
    out += "<p>" + html(hidden) + "</p>\n";
  }
  if (!sender.external_url.empty()) out += "<p>" + html_value(sender.external_url) + "</p>\n";
  return out + "<p style=\"color:#656d76;font-size:.85em\">" + html(footer(notification)) +
         "</p>\n</body></html>\n";
}

}  // namespace tocsin::actions
