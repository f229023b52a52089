# What is installed: the headers that a user's program includes, and those that they include. All others are the
# library's own. tests/package checks that the list is closed and names no header of a library that users need not have.
set(core_headers
    base/bounds.h base/error.h base/log.h base/nearest.h base/option_reader.h base/progress.h
    base/random.h base/registry.h base/stop_request.h base/threads.h
    ops/activation.h ops/activation_kind.h ops/adamw.h ops/allocator.h ops/check.h ops/conv2d.h
    ops/conv_algorithm.h ops/dense.h ops/depthwise.h ops/device.h ops/libtorch.h ops/liquid.h ops/lstm_gates.h ops/memory_meter.h
    ops/norm.h ops/packed_conv.h ops/pixel_steps.h ops/resize.h ops/runtime.h ops/scan.h ops/step_rules.h
    ops/strided_conv.h
    ssm/conv_operator.h ssm/conv_ssm.h ssm/diagonal_states.h ssm/discretize.h ssm/discretize_kernels.h
    ssm/hippo.h ssm/initializers.h ssm/ring_states.h
    nn/activation_block.h nn/attention.h nn/favor.h nn/frame_coder.h nn/frame_plan.h nn/maskgit.h nn/modules.h
    nn/patch_discriminator.h nn/quantizer.h nn/quantizer_kinds.h nn/recompute.h nn/res_block.h nn/transformer_stack.h
    nn/vq_blocks.h nn/vq_coder.h nn/watched_plan.h
    cores/conv_cells.h cores/convgru.h cores/convlstm.h cores/convrnn.h cores/convs5.h cores/convs5_options.h cores/convs5_ssm.h cores/core.h cores/frame_core.h cores/hybrid.h
    cores/layer_stack.h cores/layer_wrapper.h cores/performer.h cores/registry.h cores/s5.h
    cores/state.h cores/state_dynamics.h cores/token_core.h cores/transformer.h)

set(convssm_headers
    base/atomic_file.h base/file_ending.h base/file_memory.h
    io/array.h io/array_file.h io/array_stream.h io/csv.h io/gif.h io/grib.h io/grid_file.h io/grid_open.h io/grid_writer.h io/hdf5.h io/idx.h io/jpeg.h io/mp4.h io/netcdf.h io/npy.h io/npz.h io/png.h io/pnm.h
    io/safetensors.h io/source.h io/tensor.h io/tensorboard.h io/tiff.h io/torch_file.h io/video_format.h
    io/video_read.h io/video_writer.h io/yaml.h io/zarr.h io/zip.h
    data/actions.h data/array_cache.h data/axes.h data/clip_counts.h data/clip_layout.h data/clip_reader.h data/clips.h data/comparison.h
    data/convert.h data/dataset.h data/field_choice.h data/field_writer.h data/folder.h data/frame_format.h data/frame_view.h data/inspect.h data/loader.h data/moving_mnist.h data/walk.h
    data/pixels.h data/recording.h data/write_clips.h data/write_codes.h
    worlds/pose.h worlds/record.h worlds/revisit.h worlds/world.h
    metrics/ensemble.h metrics/events.h metrics/field_errors.h metrics/field_weights.h metrics/frechet.h metrics/fvd.h metrics/i3d.h metrics/i3d_resize.h metrics/lpips.h
    metrics/lpips_backbones.h metrics/measured.h metrics/metric_set.h metrics/psnr.h metrics/registry.h metrics/ssim.h
    metrics/weights.h
    models/action_input.h models/clip_random.h models/codes/code_input.h models/codes/code_loss.h
    models/codes/code_model.h models/codes/code_predictor.h models/codes/masking.h
    models/cwvae/cwvae.h models/cwvae/frame_side.h models/cwvae/hierarchy.h models/cwvae/layers.h models/dynamics.h
    models/fitvid/batch_norm.h models/fitvid/blocks.h models/fitvid/coder.h models/fitvid/fitvid.h models/fitvid/frame_side.h models/fitvid/recurrent.h
    models/flops.h models/forecaster.h models/frame_input.h
    models/latent_fdm/denoiser.h models/latent_fdm/diffusion.h models/latent_fdm/frame_attention.h models/latent_fdm/latent_fdm.h
    models/latent_fdm/layers.h models/latent_fdm/schemes.h models/model.h
    models/perceiver_ar/network.h models/perceiver_ar/past.h models/perceiver_ar/perceiver_ar.h
    models/pixel/encoder_input.h models/pixel/pixel_predictor.h models/registry.h models/sequence_options.h models/teco/draft_and_revise.h models/teco/mask_schedule.h
    models/teco/teco.h models/tokenizer.h models/vqgan/autoencoder.h models/vqgan/vqgan.h models/waiting_state.h
    generate/context.h generate/frame_sink.h generate/generate.h generate/perturb.h generate/predictor.h generate/rollout.h
    generate/state_file.h
    train/carried_states.h train/gradients.h train/interval.h train/memory_estimate.h train/observer.h train/optimizer.h
    train/options.h train/trainer.h train/validation.h
    evaluate/compare.h evaluate/evaluate.h evaluate/field_contest.h evaluate/field_scores.h evaluate/reconstruct.h
    evaluate/references.h evaluate/scores.h evaluate/setting.h evaluate/skill_options.h
    evaluate/timing_study.h evaluate/truth.h
    run/checkpoint.h run/config.h run/data_memory.h run/export.h run/import_vqgan.h run/frame_size.h run/model_file.h run/recorder.h run/run_folder.h
    run/tokenizer_section.h run/training_run.h
    report/report.h)
