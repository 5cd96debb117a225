#include "collectors/hook/publish/tensor_rows.h"

#include "collectors/collectors.h"

namespace tocsin::hook {

using core::Dtype;

TensorRows::TensorRows(const CapturePlan& plan, const NameTable& names, const StepCounter& steps,
                       FrameBatcher& frames)
    : plan_(plan),
      names_(names),
      steps_(steps),
      frames_(frames),
      statistics_({plan.config().delta_memory}) {
  follow_plan();
}

bool TensorRows::add(const LentTensor& tensor, const Name& name, CollectionMask due) {
  const std::uint64_t count = elements(tensor.shape);
  if (count == 0 && (tensor.flags & core::meta::kEmptyHere) == 0) return false;
  const Layout layout = layout_of(tensor.shape, tensor.strides);
  const Dtype dtype = tensor.dtype == Dtype::unknown ? name.dtype : tensor.dtype;
  core::SummaryRow row =
      layout == Layout::strided
          ? collectors::reduce_strided(dtype, tensor.data, tensor.shape, tensor.strides)
          : collectors::reduce(dtype, tensor.data, count);
  row.name = name.hash;
  row.meta |= core::meta::make(dtype, name.role, tensor.flags);
  measure(tensor, name, layout, due, row);
  frames_.add(row);
  return true;
}

// What is measured beyond the columns goes out with the row that is added next.
void TensorRows::measure(const LentTensor& tensor, const Name& name, Layout layout,
                         CollectionMask due, core::SummaryRow& row) {
  const StatisticMask asked = plan_.statistics_of(name.collections & due);
  collectors::TensorSample sample;
  sample.id = tensor.id;
  sample.dtype = core::meta::dtype(row.meta);
  sample.data = tensor.data;
  sample.count = row.count;
  sample.shape = tensor.shape;
  sample.row_major = layout == Layout::contiguous;
  sample.step = steps_.step();
  sample.row = row;
  sample.role = name.role;
  sample.op_type = name.op_type;
  sample.global_step = steps_.global_step();
  const bool in_pieces = layout == Layout::strided;
  if (asked != 0 && (in_pieces || (!sample.row_major && (asked & statistics_.in_order()) != 0))) {
    if (!gather(tensor.data, core::size_of(sample.dtype), tensor.shape, tensor.strides,
                gathered_)) {
      ++not_gathered_;
      if (in_pieces) return;
    } else {
      sample.data = gathered_.data();
      sample.row_major = true;
    }
  } else if (in_pieces) {
    return;
  }
  ExtensionRows& out = frames_.next_summary();
  statistics_.measure(sample, asked, out);
  if (out.is_approximate()) row.meta |= core::meta::kApproximate;
}

void TensorRows::admit(std::span<const LentTensor> tensors, CollectionMask due) {
  const StatisticMask any = plan_.statistics_of(kAnyCollection);
  if (any == 0) return;
  std::vector<collectors::Wish> wishes;
  for (const LentTensor& tensor : tensors) {
    const CollectionMask wanted = tensor.off_grid ? kAnyCollection : due;
    if (wanted == 0) continue;
    const Name* name = names_.find(tensor.id);
    if (name == nullptr) continue;
    const StatisticMask asked = plan_.statistics_of(name->collections & wanted);
    if (asked == 0 || !statistics_.is_new(tensor.id, asked)) continue;
    wishes.push_back({tensor.id, elements(tensor.shape) * core::size_of(tensor.dtype), name->text});
  }
  if (!wishes.empty()) statistics_.admit(wishes, any);
}

}  // namespace tocsin::hook
