// publish_metric by StatsD over UDP.
//
// Sends       gauges with DogStatsD's tags, several lines per datagram.
// Retries     only what this machine itself refuses to send.
// Idempotent  a gauge is set, never changed by a difference.
// Needs       nothing; nobody confirms a datagram.
// Source      StatsD's metric types; Datadog's DogStatsD datagram format.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "actions/metrics/metric_transport.h"
#include "actions/transport/datagram_sender.h"

namespace tocsin::actions {
namespace {

using core::AttemptOutcome;
using core::OutcomeClass;

// What an Ethernet frame carries after IPv6, UDP and a tunnel's header.
constexpr std::size_t kMaxDatagram = 1432;

/// Characters that end a tag become `_`.
std::string statsd_tag(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return c == ',' || c == '|' || c == '#' || c == '@' || c == '\n' || c == '\r'; },
      '_');
  return text;
}

std::string statsd_line(const IssueSeries& series, const IssueFamily& family) {
  std::array<char, 48> value{};
  const double number = family.value(series);
  const bool whole = number == std::trunc(number);
  std::snprintf(value.data(), value.size(),
                series.scalar ? "%.9g"
                : whole       ? "%.0f"
                              : "%.3f",
                number);
  std::string out = std::string(family.name) + ":" + value.data() + "|g";
  for (std::size_t i = 0; i < series.labels.size(); ++i) {
    const auto& [name, text] = series.labels[i];
    out += (i == 0 ? "|#" : ",") + statsd_tag(name) + ":" + statsd_tag(text);
  }
  return out;
}

/// host:port, [::1]:port.
struct StatsdAddress {
  std::string host;
  std::string port;
};

std::string statsd_address_problem(const std::string& text, StatsdAddress& out) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return "expected host:port";
  out.host = text.substr(0, colon);
  out.port = text.substr(colon + 1);
  if (out.host.front() == '[' && out.host.back() == ']') {
    out.host = out.host.substr(1, out.host.size() - 2);
  } else if (out.host.find(':') != std::string::npos) {
    return "expected [address]:port";
  }
  const bool digits = !out.port.empty() && out.port.size() <= 5 &&
                      out.port.find_first_not_of("0123456789") == std::string::npos;
  if (!digits || std::stoi(out.port) < 1 || std::stoi(out.port) > 65535) {
    return "expected a port from 1 to 65535";
  }
  return {};
}

class StatsdSink final : public MetricSink {
 public:
  StatsdSink(StatsdAddress address, const Environment& environment)
      : address_(std::move(address)), sender_(environment.datagrams) {
    if (sender_ == nullptr) {
      owned_ = udp_sender();
      sender_ = owned_.get();
    }
  }

  AttemptOutcome push(const MetricPush& push, std::chrono::milliseconds /*budget*/) override {
    std::vector<std::string> datagrams;
    std::size_t too_long = 0;
    for (const IssueSeries& series : push.series) {
      for (const IssueFamily& family : families_of(series)) {
        std::string line = statsd_line(series, family);
        if (line.size() > kMaxDatagram) {
          ++too_long;
        } else if (datagrams.empty() || datagrams.back().size() + 1 + line.size() > kMaxDatagram) {
          datagrams.push_back(std::move(line));
        } else {
          datagrams.back() += "\n" + line;
        }
      }
    }
    AttemptOutcome out;
    out.confirmed = false;
    out.code = "udp";
    if (too_long > 0) {
      out.detail =
          std::to_string(too_long) + " series are longer than a datagram; list fewer labels";
    }
    if (datagrams.empty()) return out;  // a series that ends is not said to this far side
    if (const auto sent = sender_->send(address_.host, address_.port, datagrams); !sent) {
      out.outcome = OutcomeClass::transient;
      out.code = to_string(sent.error().code);
      out.detail = sent.error().message;
    }
    return out;
  }

 private:
  const StatsdAddress address_;
  std::unique_ptr<DatagramSender> owned_;
  DatagramSender* sender_;
};

struct StatsdTransport final : MetricTransport {
  std::string address = "127.0.0.1:8125";
  StatsdAddress parts;

  void declare(config::Reader& in) override {
    in.optional("address", address, "statsd: host:port of the server");
    if (const auto problem = statsd_address_problem(address, parts); !problem.empty()) {
      in.error("address", problem);
    }
  }
  [[nodiscard]] std::unique_ptr<MetricSink> sink(const HttpSettings& /*http*/,
                                                 const Environment& environment,
                                                 const CommonConfig& /*common*/) const override {
    return std::make_unique<StatsdSink>(parts, environment);
  }
};

}  // namespace

MetricTransportDescriptor statsd_transport() {
  return {"statsd",
          "StatsD with tags, over UDP",
          false,
          false,
          {"address"},
          [] {
            return std::unique_ptr<MetricTransport>(std::make_unique<StatsdTransport>()); }};
}

}  // namespace tocsin::actions
