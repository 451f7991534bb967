# For tools/wheel_libraries.sh: CMake includes this into oneDNN's own build (CMAKE_PROJECT_INCLUDE), which
# compiles every file even where only one primitive is enabled. Here the files of the others are left
# out; what a product needs of them after all, the linker would miss.
function(snapkv_leave_out)
  foreach(target dnnl_cpu dnnl_cpu_x64)
    if(NOT TARGET ${target})
      continue()
    endif()
    get_target_property(sources ${target} SOURCES)
    foreach(names
        "rnn|lrn|prelu|shuffle|ip_convolution|gemm_inner_product[.]|simple_(concat|layer|resampling|sum)"
        "gemm_.*conv|gemm_.+_inner_product"
        "jit_(avx2|sse41|avx512|brgemm|brdgmm).*(conv|deconv|inner_product|resampling)"
        "jit_uni_(batch|deconv|dw_|group|i8i8|instance|layer|ncsp|pool|reduction|reorder|resampling)"
        "jit_uni_(eltwise_int|eltwise[.]|softmax|tbb|x8s8s32x|xf16_sum|binary_kernel|binary[.])"
        "n[chwsp]*_(batch|group|pool)"
        "ref_(batch|binary|conv|deconv|eltwise|group|inner|layer|lrn|pool|prelu)"
        "ref_(reduction|resampling|shuffle|softmax)")
      list(FILTER sources EXCLUDE REGEX "/(${names})[^/]*(/[^/]*)?$")
    endforeach()
    set_property(TARGET ${target} PROPERTY SOURCES ${sources})
  endforeach()
endfunction()
cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL snapkv_leave_out)
