#include "actions/metrics/remote_write_body.h"

#include <snappy.h>

#include <algorithm>
#include <bit>
#include <map>
#include <protozero/pbf_writer.hpp>
#include <string_view>

namespace tocsin::actions {
namespace {

// The numbers of prompb/types.proto and prompb/remote.proto.
namespace v1 {
constexpr protozero::pbf_tag_type kSeries = 1, kMetadata = 3;         // WriteRequest
constexpr protozero::pbf_tag_type kLabels = 1, kSamples = 2;          // TimeSeries
constexpr protozero::pbf_tag_type kName = 1, kLabelValue = 2;         // Label
constexpr protozero::pbf_tag_type kType = 1, kFamily = 2, kHelp = 4;  // MetricMetadata
}  // namespace v1
// The numbers of io/prometheus/write/v2/types.proto.
namespace v2 {
constexpr protozero::pbf_tag_type kSymbols = 4, kSeries = 5;                 // Request
constexpr protozero::pbf_tag_type kLabels = 1, kSamples = 2, kMetadata = 5;  // TimeSeries
constexpr protozero::pbf_tag_type kType = 1, kHelp = 3;                      // Metadata
}  // namespace v2
constexpr protozero::pbf_tag_type kSampleValue = 1, kSampleTime = 2;  // Sample of both
constexpr int kCounter = 1, kGauge = 2;                               // of both

int type_of(const IssueFamily& family) {
  return std::string_view(family.type) == "counter" ? kCounter : kGauge;
}

void add_sample(protozero::pbf_writer& series, protozero::pbf_tag_type tag, double value,
                std::int64_t milliseconds) {
  protozero::pbf_writer sample(series, tag);
  sample.add_double(kSampleValue, value);
  sample.add_int64(kSampleTime, milliseconds);
}

/// Texts by their place in the list of symbols.
class Symbols {
 public:
  Symbols() { (void)place_of(""); }  // the first one is empty
  std::uint32_t place_of(const std::string& text) {
    const auto [at, fresh] = places_.emplace(text, static_cast<std::uint32_t>(order_.size()));
    if (fresh) order_.push_back(&at->first);
    return at->second;
  }
  [[nodiscard]] const std::vector<const std::string*>& in_order() const { return order_; }

 private:
  std::map<std::string, std::uint32_t> places_;
  std::vector<const std::string*> order_;
};

}  // namespace

double stale_marker() { return std::bit_cast<double>(std::uint64_t{0x7ff0000000000002}); }

void add_samples(const IssueSeries& series, bool ended, std::vector<RemoteSample>& out) {
  for (const IssueFamily& family : families_of(series)) {
    RemoteSample one{series.labels, ended ? stale_marker() : family.value(series), &family};
    one.labels.emplace_back("__name__", family.name);
    std::sort(one.labels.begin(), one.labels.end());
    out.push_back(std::move(one));
  }
}

std::string write_request_1(std::span<const RemoteSample> samples, std::int64_t milliseconds) {
  std::string out;
  protozero::pbf_writer request(out);
  for (const RemoteSample& one : samples) {
    protozero::pbf_writer series(request, v1::kSeries);
    for (const auto& [name, value] : one.labels) {
      protozero::pbf_writer label(series, v1::kLabels);
      label.add_string(v1::kName, name);
      label.add_string(v1::kLabelValue, value);
    }
    add_sample(series, v1::kSamples, one.value, milliseconds);
  }
  const auto describe = [&](const IssueFamily& family) {
    protozero::pbf_writer metadata(request, v1::kMetadata);
    metadata.add_enum(v1::kType, type_of(family));
    metadata.add_string(v1::kFamily, family.name);
    metadata.add_string(v1::kHelp, family.help);
  };
  for (const IssueFamily& family : kIssueFamilies) describe(family);
  const bool scalars = std::any_of(samples.begin(), samples.end(), [](const RemoteSample& one) {
    return one.family == &kScalarFamilies[0];
  });
  if (scalars) describe(kScalarFamilies[0]);
  return out;
}

std::string write_request_2(std::span<const RemoteSample> samples, std::int64_t milliseconds) {
  Symbols symbols;
  std::string all_series;
  protozero::pbf_writer writer(all_series);
  for (const RemoteSample& one : samples) {
    std::vector<std::uint32_t> labels;
    for (const auto& [name, value] : one.labels) {
      labels.push_back(symbols.place_of(name));
      labels.push_back(symbols.place_of(value));
    }
    protozero::pbf_writer series(writer, v2::kSeries);
    series.add_packed_uint32(v2::kLabels, labels.begin(), labels.end());
    add_sample(series, v2::kSamples, one.value, milliseconds);
    protozero::pbf_writer metadata(series, v2::kMetadata);
    metadata.add_enum(v2::kType, type_of(*one.family));
    metadata.add_uint32(v2::kHelp, symbols.place_of(one.family->help));
  }
  std::string out;
  protozero::pbf_writer request(out);
  for (const std::string* symbol : symbols.in_order()) {
    request.add_string(v2::kSymbols, *symbol);
  }
  return out + all_series;
}

std::string snappy_block(const std::string& bytes) {
  std::string out;
  snappy::Compress(bytes.data(), bytes.size(), &out);
  return out;
}

}  // namespace tocsin::actions
