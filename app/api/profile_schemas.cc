#include "app/api/profile_schemas.h"

namespace tocsin::app {
namespace {

constexpr std::string_view kProfileSchemas =
    R"json({"WorkerList":{"type":"array","items":{"type":"object","properties":{
   "name":{"type":"string"},"rank":{"type":"integer"}},"required":["name","rank"],
   "additionalProperties":false}},
 "RunNodes":{"type":"object","properties":{"items":{"type":"array","items":{"type":"object",
   "properties":{"node":{"type":"string"},"workers":{"$ref":"#/components/schemas/WorkerList"},
   "from":{"type":"integer","description":"first sample of the run, milliseconds, UTC"},
   "to":{"type":"integer"},"first":{"type":"string","format":"date-time"},
   "last":{"type":"string","format":"date-time"},"cores":{"type":"integer"},
   "gpus":{"type":"array","items":{"type":"string"}},"interval_ms":{"type":"integer"},
   "metrics":{"type":"array","items":{"type":"object","properties":{"metric":{"type":"string"},
   "series":{"type":"integer"}},"required":["metric","series"],"additionalProperties":false}},
   "samples_gone":{"type":"boolean"}},"required":["node","workers","from","to","first","last",
   "cores","gpus","interval_ms","metrics","samples_gone"],"additionalProperties":false}},
   "without_samples":{"type":"array","items":{"type":"object","properties":{"node":{
   "type":"string"},"workers":{"$ref":"#/components/schemas/WorkerList"}},"required":["node",
   "workers"],"additionalProperties":false}},"as_of":{"type":"string","format":"date-time"}},
   "required":["items","without_samples","as_of"],"additionalProperties":false},
 "SystemSeries":{"type":"object","properties":{"x":{"type":"string","enum":["time"]},
   "level":{"type":"integer"},"width":{"type":"integer","description":"milliseconds of a bucket"},
   "from":{"type":"integer"},"to":{"type":"integer"},"series":{"type":"array","items":{
   "type":"object","properties":{"node":{"type":"string"},"name":{"type":"string"},
   "metric":{"type":"string"},"labels":{"type":"string"},"unit":{"type":"string","nullable":true},
   "stored":{"type":"integer"},"x0":{"type":"array","items":{"type":"integer"}},
   "n":{"type":"array","items":{"type":"integer"}},
   "min":{"$ref":"#/components/schemas/CurveNumbers"},
   "max":{"$ref":"#/components/schemas/CurveNumbers"},
   "mean":{"$ref":"#/components/schemas/CurveNumbers"},"bad":{"type":"array","items":{
   "type":"array","items":{"type":"integer"}},"description":
   "index, NaN, +Inf, -Inf, first millisecond"}},"required":["node","name","metric","labels","unit",
   "stored","x0","n","min","max","mean","bad"],"additionalProperties":false}},
   "left_out":{"type":"integer"},"as_of":{"type":"string","format":"date-time"}},"required":["x",
   "level","width","from","to","series","left_out","as_of"],"additionalProperties":false},
 "CoreMap":{"type":"object","properties":{"x":{"type":"string","enum":["time"]},
   "level":{"type":"integer"},"width":{"type":"integer","description":"milliseconds of a column"},
   "from":{"type":"integer"},"to":{"type":"integer"},"series":{"type":"integer"},
   "left_out":{"type":"integer"},"rows":{"type":"array","items":{"type":"object","properties":{
   "node":{"type":"string"},"name":{"type":"string"},"metric":{"type":"string"},
   "labels":{"type":"string"},"unit":{"type":"string","nullable":true},"last":{"type":"string"},
   "folded":{"type":"integer"},"cells":{"$ref":"#/components/schemas/CurveNumbers"}},"required":[
   "node","name","metric","labels","unit","last","folded"],"additionalProperties":false}},
   "as_of":{"type":"string","format":"date-time"}},"required":["x","level","width","from","to",
   "series","left_out","rows","as_of"],"additionalProperties":false},
 "Resources":{"type":"object","properties":{"items":{"type":"array","items":{"type":"object",
   "properties":{"node":{"type":"string"},"workers":{"$ref":"#/components/schemas/WorkerList"},
   "what":{"type":"string","enum":["total_cpu","total_gpu","cpu_memory","gpu_memory","io_wait",
   "network"]},"unit":{"type":"string"},"samples":{"type":"integer"},"width_ms":{
   "type":"integer"},"min":{"type":"number"},"mean":{"type":"number"},"p50":{"type":"number"},
   "p90":{"type":"number"},"p95":{"type":"number"},"p99":{"type":"number"},
   "max":{"type":"number"}},"required":["node","workers","what","unit","samples","width_ms","min",
   "mean","p50","p90","p95","p99","max"],"additionalProperties":false}},
   "as_of":{"type":"string","format":"date-time"}},"required":["items","as_of"],
   "additionalProperties":false}})json";

}  // namespace

std::string_view profile_schemas() { return kProfileSchemas; }

}  // namespace tocsin::app
