// What a rule saw, as JSON data (wire-and-api §9.2).
#include <utility>

#include "ingest/event_data.h"

namespace tocsin::ingest {
namespace {

using core::Evidence;

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json named_json(const core::NamedNumber& number) {
  Json out = Json::object();
  out["name"] = number.name;
  out["value"] = number_json(number.value);
  return out;
}

void read_named(const Fields& in, core::NamedNumber& out) {
  in.text("name", out.name);
  in.number("value", out.value);
}

Json window_json(const core::WindowRef& window) {
  Json out = Json::object();
  out["clock"] = window.clock;
  out["first"] = window.first;
  out["last"] = window.last;
  out["first_time"] = time_or_null(window.first_time);
  out["last_time"] = time_or_null(window.last_time);
  out["points"] = window.points;
  out["partial"] = window.partial;
  out["missing_ranks"] = window.missing_ranks;
  return out;
}

template <typename T>
void read_numbers(const Fields& in, std::string_view name, std::vector<T>& out) {
  in.each(name, [&](const Json& item) {
    if (!item.is_number_integer()) return in.wrong(name, "a list of whole numbers");
    if constexpr (std::is_unsigned_v<T>) {
      const auto number = item.get<std::int64_t>();
      if (number < 0 || number > std::int64_t{std::numeric_limits<T>::max()}) {
        return in.wrong(name, "a list of ranks");
      }
    }
    out.push_back(item.get<T>());
  });
}

void read_window(const Fields& in, core::WindowRef& out) {
  in.text("clock", out.clock);
  in.integer("first", out.first);
  in.integer("last", out.last);
  in.time("first_time", out.first_time);
  in.time("last_time", out.last_time);
  in.integer("points", out.points);
  in.boolean("partial", out.partial);
  read_numbers(in, "missing_ranks", out.missing_ranks);
}

Json tensor_json(const core::TensorRef& tensor) {
  Json out = Json::object();
  out["name"] = tensor.name;
  out["collection"] = text_or_null(tensor.collection);
  out["dtype"] = core::to_string(tensor.dtype);
  out["shape"] = tensor.shape;
  return out;
}

void read_tensor(const Fields& in, core::TensorRef& out) {
  in.text("name", out.name);
  in.text("collection", out.collection);
  in.word("dtype", out.dtype, [](const std::string& text) { return core::dtype_from(text); });
  read_numbers(in, "shape", out.shape);
}

Json affected_json(const core::Affected& affected) {
  Json worst = Json::array();
  for (const auto& [unit, value] : affected.worst) {
    Json item = Json::object();
    item["unit"] = unit;
    item["value"] = number_json(value);
    worst.push_back(std::move(item));
  }
  Json out = Json::object();
  out["hit"] = affected.hit;
  out["evaluated"] = affected.evaluated;
  out["worst"] = std::move(worst);
  return out;
}

void read_affected(const Fields& in, core::Affected& out) {
  in.integer("hit", out.hit);
  in.integer("evaluated", out.evaluated);
  in.objects("worst", [&](const Fields& item) {
    auto& [unit, value] = out.worst.emplace_back();
    item.text("unit", unit);
    item.number("value", value);
  });
}

}  // namespace

Json evidence_json(const Evidence& from) {
  Json out = Json::object();
  out["observed"] = named_json(from.observed);
  out["operator"] = from.op;
  out["threshold"] = from.threshold ? named_json(*from.threshold) : Json(nullptr);
  if (from.tensor) out["tensor"] = tensor_json(*from.tensor);
  out["window"] = window_json(from.window);
  Json parameters = Json::object();
  for (const core::Parameter& parameter : from.parameters) {
    parameters[parameter.name] = {{"value", value_json(parameter.value)},
                                  {"origin", parameter.origin}};
  }
  out["parameters"] = std::move(parameters);
  out["first_seen"] = time_or_null(from.first_seen);
  out["occurrences"] = from.occurrences;
  out["affected"] = affected_json(from.affected);
  Json refs = Json::array();
  for (const core::DataRef& ref : from.data_refs) {
    refs.push_back({{"topic", ref.topic},
                    {"partition", ref.partition},
                    {"first", ref.first},
                    {"last", ref.last}});
  }
  out["data_refs"] = std::move(refs);
  out["values"] = value_json(core::Value(from.values));
  return out;
}

void read_evidence(const Fields& in, Evidence& out) {
  in.object("observed", [&](const Fields& found) { read_named(found, out.observed); });
  in.text("operator", out.op);
  in.object("threshold", [&](const Fields& found) { read_named(found, out.threshold.emplace()); });
  in.object("tensor", [&](const Fields& found) { read_tensor(found, out.tensor.emplace()); });
  in.object("window", [&](const Fields& found) { read_window(found, out.window); });
  if (const Json* parameters = in.find("parameters"); parameters && parameters->is_object()) {
    for (const auto& [name, parameter] : parameters->items()) {
      core::Parameter& read = out.parameters.emplace_back();
      read.name = name;
      if (!parameter.is_object()) {
        read.value = value_from(parameter);  // the short form of other producers
        continue;
      }
      if (const auto value = parameter.find("value"); value != parameter.end()) {
        read.value = value_from(*value);
      }
      if (const auto origin = parameter.find("origin");
          origin != parameter.end() && origin->is_string()) {
        read.origin = origin->get<std::string>();
      }
    }
  }
  in.time("first_seen", out.first_seen);
  in.integer("occurrences", out.occurrences);
  in.object("affected", [&](const Fields& found) { read_affected(found, out.affected); });
  in.objects("data_refs", [&](const Fields& item) {
    core::DataRef& ref = out.data_refs.emplace_back();
    item.text("topic", ref.topic);
    item.integer("partition", ref.partition);
    item.integer("first", ref.first);
    item.integer("last", ref.last);
  });
  if (const Json* values = in.find("values")) {
    core::Value value = value_from(*values);
    if (const auto* map = std::get_if<core::ValueMap>(&value.storage())) out.values = *map;
  }
}

}  // namespace tocsin::ingest
