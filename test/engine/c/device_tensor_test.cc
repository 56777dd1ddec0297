// Tensors that an index on a device does not support, each rejected with a specific error; and the
// device part of the C API without a device.
#include "engine/c/device_tensor.h"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cairn/c/device.h"
#include "cairn/device.h"
#include "cairn/types.h"
#include "test/engine/c/c_handles.h"
#include "test/require_ok.h"

namespace cairn {
BOOST_AUTO_TEST_SUITE(device_tensor_test)
namespace {

// A tensor of 4 elements in DLPack's DLManagedTensor.
struct Tensor {
  explicit Tensor(uint8_t code = kDlUInt, uint8_t bits = 32)
      : tensor{memory, kDlCuda, 0, 1, code, bits, 1, shape, nullptr, 0} {}
  const DLManagedTensor* managed() const {
    return reinterpret_cast<const DLManagedTensor*>(&tensor);
  }

  alignas(8) char memory[64] = {};
  int64_t shape[1] = {4};
  int64_t strides[1] = {1};
  DlTensor tensor;
  void* manager_context = nullptr;
  void (*deleter)(DLManagedTensor*) = nullptr;
};

void CheckRefused(const std::function<void(Tensor*)>& change, const std::string& words) {
  Tensor tensor;
  const DeviceElements elements =
      RequireOk(ReadTensor(tensor.managed(), "keys", TensorType::kU32, 0, 4));
  BOOST_TEST(elements.data == tensor.memory);
  change(&tensor);
  const absl::Status status = ReadTensor(tensor.managed(), "keys", TensorType::kU32, 0, 4).status();
  BOOST_TEST(absl::IsInvalidArgument(status));
  const std::string message(status.message());
  BOOST_TEST(message.find("keys: ") == 0u, message);
  BOOST_TEST(message.find(words) != std::string::npos, message);
}

}  // namespace

BOOST_AUTO_TEST_CASE(tensors_that_do_not_fit) {
  CheckRefused([](Tensor* t) { t->tensor.device_type = kDlCpu; }, "memory of CUDA");
  CheckRefused([](Tensor* t) { t->tensor.device_id = 1; }, "device 0, the index's");
  CheckRefused([](Tensor* t) { t->tensor.ndim = 2; }, "one dimension, found one of 2");
  CheckRefused([](Tensor* t) { t->tensor.ndim = 0; }, "one dimension");
  CheckRefused([](Tensor* t) { t->tensor.shape = nullptr; }, "one dimension");
  CheckRefused([](Tensor* t) { t->shape[0] = -4; }, "one dimension");
  CheckRefused([](Tensor* t) { t->shape[0] = 3; }, "4 elements, found 3");
  CheckRefused([](Tensor* t) { t->shape[0] = 0; }, "4 elements, found 0");
  CheckRefused([](Tensor* t) { t->tensor.code = kDlInt; }, "uint32, found DLDataType (code 0");
  CheckRefused([](Tensor* t) { t->tensor.bits = 64; }, "64 bits");
  CheckRefused([](Tensor* t) { t->tensor.lanes = 2; }, "2 lanes");
  CheckRefused([](Tensor* t) { t->strides[0] = 2, t->tensor.strides = t->strides; },
               "a stride of 2");
  CheckRefused([](Tensor* t) { t->tensor.data = nullptr; }, "no memory");
  CheckRefused([](Tensor* t) { t->tensor.byte_offset = 2; }, "aligned to 4 bytes");
  BOOST_TEST(absl::IsInvalidArgument(ReadTensor(nullptr, "keys", TensorType::kU32, 0).status()));
}

BOOST_AUTO_TEST_CASE(tensors_that_fit) {
  Tensor moved;
  moved.tensor.byte_offset = 8;
  moved.tensor.strides = moved.strides;
  moved.tensor.device_type = kDlCudaManaged;
  moved.tensor.device_id = 3;
  const DeviceElements elements =
      RequireOk(ReadTensor(moved.managed(), "keys", TensorType::kU32, 0));
  BOOST_TEST(elements.data == moved.memory + 8);
  BOOST_TEST(elements.size == 4u);
  RequireOk(ReadTensor(Tensor(kDlInt, 32).managed(), "rows", TensorType::kU32OrI32, 0));
  RequireOk(ReadTensor(Tensor(kDlInt, 64).managed(), "counts", TensorType::kU64OrI64, 0));
  RequireOk(ReadTensor(Tensor(kDlBool, 8).managed(), "found", TensorType::kBool, 0));
  RequireOk(ReadTensor(Tensor(kDlUInt, 8).managed(), "found", TensorType::kBool, 0));
  RequireOk(ReadTensor(Tensor(kDlUInt, 8).managed(), "bytes", TensorType::kByte, 0));
  Tensor empty;
  empty.shape[0] = 0;
  empty.tensor.data = nullptr;
  BOOST_TEST(RequireOk(ReadTensor(empty.managed(), "keys", TensorType::kU32, 0)).size == 0u);
}

BOOST_AUTO_TEST_CASE(without_a_device_an_index_cannot_be_opened) {
  const TestArrow keys("I", {uint64_t{3}, uint64_t{1}});
  const IndexHandle index = IndexOver(keys);
  cairn_device_index* device_index = nullptr;
  CheckError(cairn_device_open(nullptr, nullptr, 0, &device_index), CAIRN_INVALID_ARGUMENT,
             {"index"});
  CheckError(cairn_device_find_first(nullptr, nullptr, nullptr, nullptr), CAIRN_INVALID_ARGUMENT,
             {"index"});
  cairn_device_close(nullptr);
  int32_t count = 0;
  const absl::Status devices = ListDevices().status();
  cairn_error* const error = cairn_devices(&count);
  if (devices.ok()) {
    RequireNone(error);
    BOOST_TEST(count > 0);
    return;
  }
  CheckError(error, static_cast<int32_t>(devices.code()), {std::string(devices.message())});
  CheckError(cairn_device_open(index.get(), nullptr, 0, &device_index),
             static_cast<int32_t>(devices.code()), {std::string(devices.message())});
  BOOST_TEST(device_index == nullptr);
}

BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn
