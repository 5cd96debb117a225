#include "collectors/hook/publish/raw_capture.h"

#include <utility>

#include "collectors/hook/capture/tensor_math.h"

namespace tocsin::hook {

void RawCapture::copy(const LentTensor& tensor, const Name& name) {
  const core::Dtype dtype = tensor.dtype == core::Dtype::unknown ? name.dtype : tensor.dtype;
  const std::uint64_t count = elements(tensor.shape);
  const std::size_t width = core::size_of(dtype);
  if (count == 0) return;
  copied_ = true;
  const std::uint64_t bytes = count * width;
  const bool pieces = layout_of(tensor.shape, tensor.strides) != Layout::contiguous;
  if (width == 0 || (pieces && bytes > kMostGathered)) {
    return queue_->skip(RawSkip::unreadable, bytes);
  }
  if (!queue_->admit(steps_.global_step(), bytes)) return;
  RawTensor out;
  if (!pieces) {
    const auto* data = static_cast<const std::byte*>(tensor.data);
    out.data.assign(data, data + bytes);
  } else if (!gather(tensor.data, width, tensor.shape, tensor.strides, out.data)) {
    return queue_->skip(RawSkip::unreadable, bytes);
  }
  out.header = frames_.stamp();
  out.name = name.hash;
  out.text = name.text;
  out.meta = core::meta::make(dtype, name.role, tensor.flags);
  out.dtype = dtype;
  out.dims.assign(tensor.shape.begin(), tensor.shape.end());
  queue_->push(std::move(out));
}

void RawCapture::sent() {
  if (!std::exchange(copied_, false)) return;
  queue_->wake();
  for (const RawSkip reason : queue_->take_news()) announcer_.skipped_raw(to_string(reason));
}

}  // namespace tocsin::hook
