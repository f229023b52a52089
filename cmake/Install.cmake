# `cmake --install` gives a package of two components: find_package(convssm COMPONENTS core) with convssm::core, for a
# network of one's own, and find_package(convssm) with convssm::convssm too, everything.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/convssm)

set_target_properties(convssm_program convssm_bench_program PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
set_target_properties(convssm_core convssm PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION}
                                                      INSTALL_RPATH_USE_LINK_PATH ON INSTALL_RPATH "$ORIGIN")
if(BUILD_SHARED_LIBS)
  set_target_properties(convssm_program convssm_bench_program
                        PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
endif()
foreach(component core convssm)
  set(target convssm_core)
  if(component STREQUAL convssm)
    set(target convssm)
  endif()
  install(TARGETS ${target} EXPORT ${component} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT ${component} FILE ${component}Targets.cmake NAMESPACE convssm:: DESTINATION ${package_dir})
endforeach()
install(TARGETS convssm_program convssm_bench_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES ${PROJECT_BINARY_DIR}/include/convssm/base/version.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/convssm/base)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/pretrained DESTINATION ${CMAKE_INSTALL_DATADIR}/convssm OPTIONAL)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/convssmConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/convssmConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/convssmConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/convssmConfig.cmake ${PROJECT_BINARY_DIR}/convssmConfigVersion.cmake
        ${CMAKE_CURRENT_LIST_DIR}/Torch.cmake DESTINATION ${package_dir})
