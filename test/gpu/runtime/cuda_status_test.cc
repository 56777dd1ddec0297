#include "gpu/runtime/cuda_status.h"

#include <boost/test/unit_test.hpp>
#include <string>

#include "absl/status/statusor.h"

// Needs no device.
namespace cairn::gpu {
BOOST_AUTO_TEST_SUITE(cuda_status_test)
namespace {

absl::StatusCode CodeOf(cudaError_t error) {
  return CudaStatus(error, "cudaCall()", "/somewhere/gpu/file.cc", 7).code();
}

absl::StatusOr<int> Refused() {
  CAIRN_RETURN_IF_CUDA_FAILS(cudaErrorInvalidValue);
  return 1;
}

BOOST_AUTO_TEST_CASE(a_device_that_is_lost_is_unavailable) {
  for (cudaError_t error :
       {cudaErrorIllegalAddress, cudaErrorLaunchFailure, cudaErrorLaunchTimeout, cudaErrorAssert,
        cudaErrorECCUncorrectable, cudaErrorHardwareStackError, cudaErrorIllegalInstruction,
        cudaErrorMisalignedAddress, cudaErrorContextIsDestroyed, cudaErrorDevicesUnavailable,
        cudaErrorSystemNotReady, cudaErrorNoDevice, cudaErrorInsufficientDriver}) {
    BOOST_TEST((CodeOf(error) == absl::StatusCode::kUnavailable), cudaGetErrorName(error));
  }
}

BOOST_AUTO_TEST_CASE(a_build_for_other_devices_is_unavailable) {
  for (cudaError_t error :
       {cudaErrorNoKernelImageForDevice, cudaErrorInvalidKernelImage,
        cudaErrorInvalidDeviceFunction, cudaErrorInvalidPtx, cudaErrorUnsupportedPtxVersion,
        cudaErrorJitCompilerNotFound, cudaErrorJitCompilationDisabled}) {
    const absl::Status status = CudaStatus(error, "cudaCall()", "/somewhere/gpu/file.cc", 7);
    BOOST_TEST(absl::IsUnavailable(status), status);
    BOOST_TEST(status.message().find("no code for the device") != std::string::npos, status);
  }
  BOOST_TEST((CodeOf(cudaErrorNotSupported) == absl::StatusCode::kUnimplemented));
}

BOOST_AUTO_TEST_CASE(other_errors_leave_the_device_as_it_is) {
  BOOST_TEST((CodeOf(cudaErrorMemoryAllocation) == absl::StatusCode::kResourceExhausted));
  BOOST_TEST((CodeOf(cudaErrorInvalidValue) == absl::StatusCode::kInternal));
  BOOST_TEST((CodeOf(cudaErrorInvalidConfiguration) == absl::StatusCode::kInternal));
  BOOST_TEST((CodeOf(cudaSuccess) == absl::StatusCode::kOk));
}

BOOST_AUTO_TEST_CASE(a_message_names_the_call_its_place_and_the_error) {
  const absl::Status status =
      CudaStatus(cudaErrorIllegalAddress, "cudaCall()", "/somewhere/gpu/file.cc", 7);
  const std::string message(status.message());
  BOOST_TEST(message.find("cudaCall() at gpu/file.cc:7: ") == 0u, message);
  BOOST_TEST(message.find("cudaErrorIllegalAddress") != std::string::npos, message);
  BOOST_TEST(Refused().status().message().find("cudaErrorInvalidValue at ") == 0u);
}

}  // namespace
BOOST_AUTO_TEST_SUITE_END()
}  // namespace cairn::gpu
