#include "app/cli/insights_command.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>

#include "app/config/config_path.h"
#include "app/config/insights_place.h"
#include "app/process/exit_code.h"
#include "core/system_clock.h"
#include "core/time.h"
#include "core/value.h"
#include "insights/insights.h"

namespace tocsin::app {
namespace {

using core::Value;
using core::ValueList;
using core::ValueMap;

std::optional<StorePaths> asked_paths(const InsightsOptions& options) {
  if (!options.directory.empty()) {
    const std::filesystem::path folder(options.directory);
    return StorePaths{folder / "insights.db", folder / "curves.db", std::nullopt};
  }
  const auto config = insights_configuration(options);
  return config ? std::optional(store_paths(*config)) : std::nullopt;
}

int cannot_read(const core::Error& error) {
  std::cerr << "tocsin: " << error.message << "\n";
  return kUnreachable;
}

// One file: a line that says that it is sound, or what is wrong.
Value checked_value(const std::string& path, const insights::StoreFindings& found) {
  ValueList lines;
  for (const std::string& line : found.lines()) lines.emplace_back(line);
  ValueList notes;
  for (const std::string& line : found.notes()) notes.emplace_back(line);
  return ValueMap{{"file", path},
                  {"sound", found.sound()},
                  {"runs", found.runs},
                  {"rows", found.rows},
                  {"decoded", found.pieces},
                  {"findings", static_cast<std::int64_t>(found.count())},
                  {"lines", std::move(lines)},
                  {"notes", std::move(notes)}};
}

void print_checked(const std::string& path, const insights::StoreFindings& found) {
  std::cout << path << ": " << (found.sound() ? "sound" : "DAMAGED") << " (" << found.runs
            << " runs or nodes, " << found.rows << " rows, " << found.pieces << " parts decoded)\n";
  for (const std::string& line : found.lines()) std::cout << "  " << line << "\n";
  if (found.count() > found.lines().size())
    std::cout << "  and " << found.count() - found.lines().size() << " more\n";
  for (const std::string& line : found.notes()) std::cout << "  note: " << line << "\n";
}

std::string time_text(std::int64_t micros) {
  return core::to_rfc3339(core::WallTime(
      std::chrono::duration_cast<core::WallTime::duration>(std::chrono::microseconds(micros))));
}

std::string age_text(std::int64_t micros) {
  const auto now = core::SystemClock().now().time_since_epoch();
  const auto age =
      std::chrono::duration_cast<std::chrono::seconds>(now - std::chrono::microseconds(micros));
  return core::to_text(core::Duration(std::max(age, std::chrono::seconds(0))));
}

double per_value(const insights::ClassStats& one) {
  const auto bytes = static_cast<double>(one.row_bytes + one.pyramid_bytes + one.histogram_bytes);
  return one.values == 0 ? 0 : bytes / static_cast<double>(one.values);
}

// By the configuration of who asks; a folder alone does not tell it. Buckets: of each level, the narrowest first.
Value ages_value(const insights::ClassStats& one, const std::optional<insights::KeepAges>& keep) {
  if (!keep) return {};
  const auto ages = insights::ages_of(one.kind, *keep);
  ValueList buckets;
  for (std::size_t part = insights::kRowsPart + 1; part < ages.size(); ++part)
    buckets.emplace_back(core::to_text(ages[part]));
  return ValueMap{{"rows", core::to_text(ages[insights::kRowsPart])},
                  {"buckets", std::move(buckets)}};
}

void print_ages(const insights::ClassStats& one, const insights::KeepAges& keep) {
  const auto ages = insights::ages_of(one.kind, keep);
  std::cout << "  " << one.name << ": values kept " << core::to_text(ages[insights::kRowsPart]);
  if (one.kind != insights::FamilyKind::span) {
    std::cout << ", buckets";
    for (std::size_t part = insights::kRowsPart + 1; part < ages.size(); ++part) {
      if (part > 1 && ages[part] == ages[part - 1]) continue;
      std::cout << (part > 1 ? ", " : " ") << core::to_text(ages[part]);
    }
  }
  if (one.rows_gone > 0) std::cout << "; " << one.rows_gone << " rows are gone by their age";
  std::cout << "\n";
}

Value class_value(const insights::ClassStats& one, const std::optional<insights::KeepAges>& keep) {
  return ValueMap{{"class", one.name},
                  {"series", one.series},
                  {"rows", one.rows},
                  {"rows_gone", one.rows_gone},
                  {"kept", ages_value(one, keep)},
                  {"values", one.values},
                  {"row_bytes", one.row_bytes},
                  {"pyramid_bytes", one.pyramid_bytes},
                  {"histogram_bytes", one.histogram_bytes},
                  {"bytes_per_value", per_value(one)}};
}

void print_class(const insights::ClassStats& one) {
  std::array<char, 256> line{};
  const int size =
      std::snprintf(line.data(), line.size(), "  %-8s %10lld %12lld %12lld %10s %10s %10s %10.2f\n",
                    one.name.c_str(), static_cast<long long>(one.series),
                    static_cast<long long>(one.rows), static_cast<long long>(one.values),
                    bytes_text(one.row_bytes).c_str(), bytes_text(one.pyramid_bytes).c_str(),
                    bytes_text(one.histogram_bytes).c_str(), per_value(one));
  std::cout.write(line.data(), size);
}

}  // namespace

std::optional<AppConfig> insights_configuration(const InsightsOptions& options) {
  config::Diagnostics diagnostics;
  AppConfig out =
      load_config(config_path(options.config_file), config::process_environment(), diagnostics);
  if (!diagnostics.has_errors()) return out;
  for (const auto& item : diagnostics.items()) std::cerr << config::to_text(item) << "\n";
  return std::nullopt;
}

StorePaths store_paths(const AppConfig& config) {
  return {insights_path(config, ""), insights_path(config, "curves.db"), config.insights.keep};
}

std::string bytes_text(std::int64_t bytes) {
  static constexpr std::array kUnits{"B", "kB", "MB", "GB", "TB"};
  auto size = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; size >= 1000 && unit + 1 < kUnits.size(); ++unit) size /= 1000;
  std::array<char, 32> out{};
  std::snprintf(out.data(), out.size(), unit == 0 ? "%.0f %s" : "%.1f %s", size, kUnits[unit]);
  return out.data();
}

int insights_check(const InsightsOptions& options) {
  const auto paths = asked_paths(options);
  if (!paths) return kConfiguration;
  ValueList files;
  bool sound = true;
  for (const auto& [path, check] : {std::pair{paths->events, &insights::check_events},
                                    std::pair{paths->curves, &insights::check_series}}) {
    auto found = check(path);
    if (!found && found.error().code != core::Code::data_loss) return cannot_read(found.error());
    if (!found) {
      const std::string why = found.error().message;
      found = insights::StoreFindings();
      found->add(why);
    }
    sound = sound && found->sound();
    files.push_back(checked_value(path, *found));
    if (!options.json) print_checked(path, *found);
  }
  if (options.json)
    std::cout << core::to_json(ValueMap{{"sound", sound}, {"files", std::move(files)}}) << "\n";
  return sound ? kOk : kFailed;
}

int insights_stats(const InsightsOptions& options) {
  const auto paths = asked_paths(options);
  if (!paths) return kConfiguration;
  auto reader = insights::EventReader::open(paths->events);
  if (!reader) return cannot_read(reader.error().in(paths->events));
  const auto events = (*reader)->size();
  if (const auto status = (*reader)->failure(); !status) return cannot_read(status.error());
  const auto curves = insights::series_stats(paths->curves);
  if (!curves) return cannot_read(curves.error());
  if (options.json) {
    ValueList classes;
    for (const auto& one : curves->classes) classes.push_back(class_value(one, paths->keep));
    std::cout << core::to_json(ValueMap{
                     {"events", ValueMap{{"file", paths->events},
                                         {"runs", events.runs},
                                         {"issues", events.issues},
                                         {"events", events.events},
                                         {"bytes", events.bytes}}},
                     {"curves",
                      ValueMap{{"file", paths->curves},
                               {"runs", curves->runs},
                               {"nodes", curves->nodes},
                               {"bytes", curves->bytes},
                               {"free_bytes", curves->free_bytes},
                               {"newest",
                                curves->newest == 0 ? Value() : Value(time_text(curves->newest))},
                               {"classes", std::move(classes)}}}})
              << "\n";
    return kOk;
  }
  std::cout << paths->events << ": " << events.runs << " runs, " << events.issues << " issues, "
            << events.events << " events, " << bytes_text(events.bytes) << "\n"
            << paths->curves << ": " << curves->runs << " runs, " << curves->nodes << " nodes, "
            << bytes_text(curves->bytes) << ", of it " << bytes_text(curves->free_bytes) << " free";
  if (curves->newest > 0)
    std::cout << "; newest value " << time_text(curves->newest) << ", " << age_text(curves->newest)
              << " old";
  std::cout << "\n";
  if (!curves->classes.empty())
    std::cout
        << "  class        series         rows       values       rows    pyramid histograms   "
           "B/value\n";
  for (const auto& one : curves->classes) print_class(one);
  for (const auto& one : curves->classes) {
    if (paths->keep) print_ages(one, *paths->keep);
  }
  return kOk;
}

}  // namespace tocsin::app
