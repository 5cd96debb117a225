#include "app/api/schema_texts.h"

namespace tocsin::app {
namespace {

// Series of numbers, and the picture of all tensors.
constexpr std::string_view kCurveSchemas =
    R"json({"CurveNumbers":{"type":"array","items":{"type":"number","nullable":true},
   "description":"null: nothing finite is there"},
 "Series":{"type":"object","properties":{"x":{"type":"string"},"level":{"type":"integer"},
   "width":{"type":"integer","description":"steps of a bucket"},"from":{"type":"integer"},
   "to":{"type":"integer"},"rows_from":{"type":"integer","nullable":true,"description":
   "single values before this step are gone by their age"},"series":{"type":"array","items":{"type":"object","properties":{
   "name":{"type":"string"},"kind":{"type":"string","enum":["scalar","clock","tensor"]},
   "mode":{"type":"string"},"worker":{"type":"string","nullable":true},"rank":{"type":"integer",
   "nullable":true},"workers":{"type":"integer"},"attempt":{"type":"integer"},
   "superseded":{"type":"boolean"},"role":{"type":"string"},"unit":{"type":"string",
   "nullable":true},"stored":{"type":"integer"},"repeats":{"type":"integer"},
   "x0":{"type":"array","items":{"type":"integer"}},"t0":{"type":"string","format":"date-time",
   "nullable":true},"dt":{"type":"array","items":{"type":"number","nullable":true},
   "description":"milliseconds since t0"},
   "value":{"$ref":"#/components/schemas/CurveNumbers"},
   "n":{"type":"array","items":{"type":"integer"}},
   "min":{"$ref":"#/components/schemas/CurveNumbers"},
   "max":{"$ref":"#/components/schemas/CurveNumbers"},
   "first":{"$ref":"#/components/schemas/CurveNumbers"},
   "last":{"$ref":"#/components/schemas/CurveNumbers"},
   "mean":{"$ref":"#/components/schemas/CurveNumbers"},
   "smooth":{"$ref":"#/components/schemas/CurveNumbers"},
   "bad":{"type":"array","items":{"type":"array","items":{"type":"integer"}},
   "description":"index, NaN, +Inf, -Inf, first step"}},
   "required":["name","kind","mode","worker","rank","workers","attempt","superseded","role","unit",
   "stored","repeats","x0","t0","dt","bad"],"additionalProperties":false}},
   "restarts":{"$ref":"#/components/schemas/Restarts"},
   "refused":{"type":"integer","description":"values left out, because the run has too many series"},
   "lost":{"type":"array","description":"what never came, of all workers","items":{"type":"object",
   "properties":{"lane":{"type":"string","nullable":true,"description":"queue of the hook; null: not known"},
   "reason":{"type":"string","description":"as the hook says it; never_came: nobody has said"},
   "workers":{"type":"integer"},"frames":{"type":"integer"},"values":{"type":"integer"},
   "first_step":{"type":"integer","nullable":true},"last_step":{"type":"integer","nullable":true}},
   "required":["lane","reason","workers","frames","values","first_step","last_step"],
   "additionalProperties":false}},
   "left_out":{"type":"integer"},"as_of":{"type":"string","format":"date-time"}},
   "required":["x","level","width","from","to","series","restarts","refused","lost","left_out",
   "as_of"],
   "additionalProperties":false},
 "Restarts":{"type":"array","description":"where later attempts went on","items":{
   "type":"object","properties":{"mode":{"type":"string"},"step":{"type":"integer"},
   "attempt":{"type":"integer"},"workers":{"type":"integer"},"again":{"type":"integer",
   "description":"steps that were gone over again, at most"},"number":{"type":"integer",
   "nullable":true,"description":"of the attempt, from 1 if no launcher numbers them"},
   "before":{"type":"integer","nullable":true,"description":"number of the attempt up to there"},
   "world_size":{"type":"integer","nullable":true},"reason":{"type":"string","nullable":true,
   "description":"how the attempt before it ended"},"exit_code":{"type":"integer","nullable":true,
   "description":"of the attempt before it"}},"required":["mode","step",
   "attempt","workers","again","number","before","world_size","reason","exit_code"],
   "additionalProperties":false}},
 "SeriesNames":{"type":"object","properties":{"items":{"type":"array","items":{"type":"object",
   "properties":{"name":{"type":"string"},"kind":{"type":"string"},"role":{"type":"string"},
   "unit":{"type":"string","nullable":true},"direction":{"type":"string","nullable":true},
   "modes":{"type":"array","items":{"type":"string"}},"workers":{"type":"integer"},
   "shape":{"type":"string","nullable":true},"collections":{"type":"array","items":{
   "type":"string"}},"worst":{"type":"number","nullable":true,"description":
   "the greatest finite magnitude ever"},"first_bad_step":{"type":"integer","nullable":true,
   "description":"the first step that was not finite"},
   "stored":{"type":"integer"},"first_step":{"type":"integer"},"last_step":{"type":"integer"},
   "last":{"nullable":true,"oneOf":[{"type":"number"},{"type":"string"}]}},"required":["name",
   "kind","role","unit","direction","shape","collections","modes","workers","stored","first_step",
   "last_step","last","worst","first_bad_step"],
   "additionalProperties":false}},"total":{"type":"integer"},"refused":{"type":"integer",
   "description":"values left out, because the run has too many series"},"tensors_gone":{
   "type":"boolean","description":"tensors gave way, because the file was too large"},
   "as_of":{"type":"string","format":"date-time"}},"required":["items","total","refused",
   "tensors_gone","as_of"],"additionalProperties":false},
 "HeatMap":{"type":"object","properties":{"stat":{"type":"string"},"mode":{"type":"string",
   "nullable":true},"modes":{"type":"array","items":{"type":"string"}},
   "level":{"type":"integer"},"width":{"type":"integer","description":"steps of a column"},
   "from":{"type":"integer"},"to":{"type":"integer"},"tensors":{"type":"integer"},
   "left_out":{"type":"integer"},"refused":{"type":"integer"},"tensors_gone":{"type":"boolean"},
   "rows":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},
   "last":{"type":"string"},"folded":{"type":"integer","description":"tensors of the row"},
   "role":{"type":"string"},"first_bad_step":{"type":"integer","nullable":true},
   "rank":{"type":"integer","description":"with by=rank; name is that of the worker"},
   "cells":{"$ref":"#/components/schemas/CurveNumbers"},"bad":{"type":"array","items":{
   "type":"array","items":{"type":"integer"}},"description":
   "column, NaN, +Inf, -Inf, first step"}},"required":["name","last","folded","role",
   "first_bad_step"],"additionalProperties":false}},"ranks":{"type":"integer"},
   "restarts":{"$ref":"#/components/schemas/Restarts"},
   "as_of":{"type":"string","format":"date-time"}},"required":["stat","mode","modes","level","width","from","to","tensors",
   "left_out","refused","tensors_gone","restarts","rows","as_of"],"additionalProperties":false},
 "Histogram":{"type":"object","properties":{"mode":{"type":"string","nullable":true},
   "modes":{"type":"array","items":{"type":"string"}},"level":{"type":"integer"},
   "width":{"type":"integer","description":"steps of a column"},"from":{"type":"integer"},
   "to":{"type":"integer"},"tensors":{"type":"integer","description":
   "whose elements are added up"},"left_out":{"type":"integer"},"thinned":{"type":"boolean",
   "description":"of columns with very many histograms the first are added up"},
   "histograms_gone":{"type":"boolean","description":
   "older histograms gave way, because the file was too large"},
   "scale":{"type":"integer","description":"2 to the power of it bins are an octave"},
   "rows":{"type":"array","description":"from the greatest value to the least","items":{
   "type":"object","properties":{"sign":{"type":"integer","enum":[1,-1]},
   "bucket":{"type":"integer"},"above":{"type":"number","description":
   "magnitudes above it, up to `up_to`"},"up_to":{"type":"number"},
   "counts":{"$ref":"#/components/schemas/ColumnCounts"}},"required":["sign","bucket","above",
   "up_to","counts"],"additionalProperties":false}},
   "histograms":{"$ref":"#/components/schemas/ColumnCounts"},
   "elements":{"$ref":"#/components/schemas/ColumnCounts"},
   "positive":{"$ref":"#/components/schemas/ColumnCounts"},
   "zero":{"$ref":"#/components/schemas/ColumnCounts"},
   "negative":{"$ref":"#/components/schemas/ColumnCounts"},
   "nan":{"$ref":"#/components/schemas/ColumnCounts"},
   "pos_inf":{"$ref":"#/components/schemas/ColumnCounts"},
   "neg_inf":{"$ref":"#/components/schemas/ColumnCounts"},
   "as_of":{"type":"string","format":"date-time"}},"required":["mode","modes","level","width",
   "from","to","tensors","left_out","thinned","histograms_gone","scale","rows","histograms",
   "elements","positive","zero","negative","nan","pos_inf","neg_inf","as_of"],
   "additionalProperties":false},
 "ColumnCounts":{"type":"array","items":{"type":"integer"},"description":
   "one of each column"},
 "TensorHealth":{"type":"object","properties":{"mode":{"type":"string","nullable":true},
   "step":{"type":"integer","nullable":true},"rows_from":{"type":"integer","nullable":true,"description":
   "the values of this step are gone by their age; those from that one on are there"},"tensors":{"type":"integer"},"first_bad":{
   "type":"object","nullable":true,"properties":{"name":{"type":"string"},"kind":{
   "type":"string"},"role":{"type":"string"},"step":{"type":"integer"}},"required":["name",
   "kind","role","step"],"additionalProperties":false},"items":{"type":"array","items":{
   "type":"object","properties":{"name":{"type":"string"},"role":{"type":"string"},"shape":{
   "type":"string","nullable":true},"step":{"type":"integer"},"elements":{"type":"integer"},
   "neg_inf":{"type":"integer"},"negative":{"type":"integer"},"zero":{"type":"integer"},
   "positive":{"type":"integer"},"pos_inf":{"type":"integer"},"nan":{"type":"integer"},
   "l2":{"oneOf":[{"type":"number"},{"type":"string"}]},"usual_l2":{"type":"number",
   "nullable":true,"description":"median of the 200 steps before"},"first_bad_step":{
   "type":"integer","nullable":true}},"required":["name","role","shape","step","elements",
   "neg_inf","negative","zero","positive","pos_inf","nan","l2","usual_l2","first_bad_step"],
   "additionalProperties":false}},"as_of":{"type":"string","format":"date-time"}},"required":[
   "mode","step","tensors","first_bad","items","as_of"],"additionalProperties":false},
 "Queries":{"type":"object","properties":{"queries":{"type":"array","minItems":1,"maxItems":32,
   "items":{"type":"object","properties":{"kind":{"type":"string","description":
   "what stands behind the run in the path: series, system/heatmap; run: the run itself"},
   "run":{"type":"string"},"parameters":{"type":"object","additionalProperties":true,
   "description":"of that route; other members are parameters too"}},"required":["kind","run"],
   "additionalProperties":true}}},"required":["queries"],
   "additionalProperties":false},
 "QueryAnswers":{"type":"object","properties":{"answers":{"type":"array","items":{
   "type":"object","properties":{"status":{"type":"integer"},"body":{"type":"object",
   "additionalProperties":true,"description":"as that route answers, or a problem"}},
   "required":["status","body"],"additionalProperties":false}}},"required":["answers"],
   "additionalProperties":false}})json";

}  // namespace

std::string_view curve_schemas() noexcept { return kCurveSchemas; }

}  // namespace tocsin::app
