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
   "network","network_rate"]},"unit":{"type":"string"},"samples":{"type":"integer"},"width_ms":{
   "type":"integer"},"min":{"type":"number"},"mean":{"type":"number"},"p50":{"type":"number"},
   "p90":{"type":"number"},"p95":{"type":"number"},"p99":{"type":"number"},
   "max":{"type":"number"}},"required":["node","workers","what","unit","samples","width_ms","min",
   "mean","p50","p90","p95","p99","max"],"additionalProperties":false}},
   "as_of":{"type":"string","format":"date-time"}},"required":["items","as_of"],
   "additionalProperties":false},
 "SpanLanes":{"type":"object","properties":{"from":{"type":"integer",
   "description":"microseconds, UTC"},"to":{"type":"integer"},"names":{"type":"array","items":{
   "type":"string"}},"tracks":{"type":"array","items":{"type":"string"}},"workers":{
   "type":"array","items":{"type":"string"}},"lanes":{"type":"array","items":{"type":"object",
   "properties":{"worker":{"type":"string"},"rank":{"type":"integer"},"track":{"type":"string"},
   "spans":{"type":"integer"},"bars":{"type":"array","items":{"type":"array","items":{
   "type":"number"}},"description":
   "microseconds behind from, microseconds, number of the name, step, spans"},"shares":{
   "type":"array","items":{"type":"object","properties":{"name":{"type":"integer"},"calls":{
   "type":"integer"},"seconds":{"type":"number"},"share":{"type":"number"}},"required":["name",
   "calls","seconds","share"],"additionalProperties":false}}},"required":["worker","rank","track",
   "spans","bars","shares"],"additionalProperties":false}},"left_out":{"type":"integer"},
   "cut":{"type":"boolean"},"spans_gone":{"type":"boolean"},"as_of":{"type":"string",
   "format":"date-time"}},"required":["from","to","names","tracks","workers","lanes","left_out",
   "cut","spans_gone","as_of"],"additionalProperties":false},
 "StepPhases":{"type":"object","properties":{"items":{"type":"array","items":{"type":"object",
   "properties":{"step":{"type":"integer"},"ranks":{"type":"integer"},"seconds":{
   "type":"number"},"phases":{"type":"array","items":{"type":"object","properties":{"name":{
   "type":"string","nullable":true,"description":"null: what no phase has"},"seconds":{
   "type":"number","description":"median of the ranks"},"min":{"type":"number"},"max":{
   "type":"number"}},"required":["name","seconds","min","max"],"additionalProperties":false}}},
   "required":["step","ranks","seconds","phases"],"additionalProperties":false}},"as_of":{
   "type":"string","format":"date-time"}},"required":["items","as_of"],
   "additionalProperties":false},
 "RankTimes":{"type":"object","properties":{"from":{"type":"integer"},"to":{"type":"integer"},
   "common":{"type":"integer","description":"steps that all ranks have ended"},"spans":{
   "type":"boolean"},"items":{"type":"array","items":{"type":"object","properties":{
   "rank":{"type":"integer"},"worker":{"type":"string"},"steps":{"type":"integer"},
   "seconds":{"type":"number"},"compute":{"type":"number"},"communication":{"type":"number"},
   "data_wait":{"type":"number"},"other":{"type":"number"},"idle":{"type":"number"},
   "overlap":{"type":"number","nullable":true},"lateness":{"type":"number","nullable":true},
   "most_late":{"type":"number"},"last_of":{"type":"integer"},"without":{"type":"number",
   "nullable":true},"late":{"type":"array","items":{"type":"number","nullable":true}}},
   "required":["rank","worker","steps","seconds","compute","communication","data_wait","other",
   "idle","overlap","lateness","most_late","last_of","without","late"],
   "additionalProperties":false}},"as_of":{"type":"string","format":"date-time"}},"required":[
   "from","to","common","spans","items","as_of"],"additionalProperties":false},
 "RunPhases":{"type":"object","properties":{"started_at":{"type":"string","format":"date-time",
   "nullable":true},"ended_at":{"type":"string","format":"date-time","nullable":true},
   "loop_start":{"type":"string","format":"date-time","nullable":true},"loop_end":{
   "type":"string","format":"date-time","nullable":true},"seconds":{"type":"number",
   "nullable":true},"initialization":{"type":"number","nullable":true},"training_loop":{
   "type":"number","nullable":true},"interrupted":{"type":"number"},"finalization":{
   "type":"number","nullable":true},"attempts":{"type":"array","items":{"type":"object",
   "properties":{"attempt":{"type":"integer"},"loop_start":{"type":"string",
   "format":"date-time"},"loop_end":{"type":"string","format":"date-time"}},"required":[
   "attempt","loop_start","loop_end"],"additionalProperties":false}},"as_of":{"type":"string",
   "format":"date-time"}},"required":["started_at","ended_at","loop_start","loop_end","seconds",
   "initialization","training_loop","interrupted","finalization","attempts","as_of"],
   "additionalProperties":false},
 "Operations":{"type":"object","properties":{"spans":{"type":"integer"},"cut":{
   "type":"boolean"},"items":{"type":"array","items":{"type":"object","properties":{"device":{
   "type":"string","enum":["GPU","CPU"]},"name":{"type":"string"},"calls":{"type":"integer"},
   "seconds":{"type":"number"},"share":{"type":"number"}},"required":["device","name","calls",
   "seconds","share"],"additionalProperties":false}},"as_of":{"type":"string",
   "format":"date-time"}},"required":["spans","cut","items","as_of"],
   "additionalProperties":false}})json";

}  // namespace

std::string_view profile_schemas() { return kProfileSchemas; }

}  // namespace tocsin::app
