//go:build hw

#ifndef RDMASIM_CUDA_DRIVER_H
#define RDMASIM_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

// Functions return the driver's result, 0 for success. Each that works on memory makes the device's context that of its
// thread first, since Go may run it on any.

int cuda_load(char *why, int room);
int cuda_init(void);
int cuda_version(int *v);
int cuda_count(int *n);
int cuda_device(int ordinal, int *dev);
int cuda_device_at(const char *bus, int *dev);
int cuda_name(int dev, char *name, int room);
int cuda_attribute(int dev, int attribute, int *value);
int cuda_retain(int dev, void **ctx);
int cuda_release(int dev);
int cuda_alloc(void *ctx, int host, size_t n, uint64_t *at);
int cuda_free(void *ctx, int host, uint64_t at);
int cuda_copy(void *ctx, uint64_t dst, uint64_t src, size_t n);
int cuda_copy_bytes(void *ctx, uint64_t dst, void *from, void *to, uint64_t src, size_t n);
int cuda_export(void *ctx, uint64_t at, size_t n, int *fd);

#endif
