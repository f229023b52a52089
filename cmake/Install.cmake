# `cmake --install` gives a package: find_package(convssm), target_link_libraries(app convssm::convssm).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/convssm)

set_target_properties(convssm_program PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS convssm EXPORT convssmTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS convssm_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/convssm DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "cli" EXCLUDE)
install(FILES ${PROJECT_BINARY_DIR}/include/convssm/base/version.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/convssm/base)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/pretrained DESTINATION ${CMAKE_INSTALL_DATADIR}/convssm OPTIONAL)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(EXPORT convssmTargets NAMESPACE convssm:: DESTINATION ${package_dir})

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/convssmConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/convssmConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/convssmConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/convssmConfig.cmake ${PROJECT_BINARY_DIR}/convssmConfigVersion.cmake
        DESTINATION ${package_dir})
