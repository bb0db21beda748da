//go:build hw

#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

// The driver's library belongs to its kernel modules and is no dependency of a build: what is used of it is looked up by
// name. CUresult and CUdevice are int, CUdeviceptr is 64 bits, handles are pointers.
static struct {
	int (*init)(unsigned), (*version)(int *), (*count)(int *), (*device)(int *, int), (*at)(int *, const char *);
	int (*name)(char *, int, int), (*attribute)(int *, int, int);
	int (*retain)(void **, int), (*release)(int), (*current)(void *);
	int (*alloc)(uint64_t *, size_t), (*free)(uint64_t), (*alloc_host)(void **, size_t), (*free_host)(void *);
	int (*copy)(uint64_t, uint64_t, size_t), (*in)(uint64_t, const void *, size_t), (*out)(void *, uint64_t, size_t);
	int (*export)(void *, uint64_t, size_t, int, unsigned long long);
} f;

static const int not_supported = 801; // CUDA_ERROR_NOT_SUPPORTED

int cuda_load(char *why, int room)
{
	struct { const char *name; void *to; int needed; } all[] = {
		{"cuInit", &f.init, 1}, {"cuDriverGetVersion", &f.version, 1}, {"cuDeviceGetCount", &f.count, 1}, {"cuDeviceGet", &f.device, 1},
		{"cuDeviceGetByPCIBusId", &f.at, 1}, {"cuDeviceGetName", &f.name, 1}, {"cuDeviceGetAttribute", &f.attribute, 1},
		{"cuDevicePrimaryCtxRetain", &f.retain, 1}, {"cuDevicePrimaryCtxRelease_v2", &f.release, 1}, {"cuCtxSetCurrent", &f.current, 1},
		{"cuMemAlloc_v2", &f.alloc, 1}, {"cuMemFree_v2", &f.free, 1}, {"cuMemAllocHost_v2", &f.alloc_host, 1}, {"cuMemFreeHost", &f.free_host, 1},
		{"cuMemcpy", &f.copy, 1}, {"cuMemcpyHtoD_v2", &f.in, 1}, {"cuMemcpyDtoH_v2", &f.out, 1},
		{"cuMemGetHandleForAddressRange", &f.export, 0}, // from 11.7 on
	};
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		lib = dlopen("libcuda.so", RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		const char *e = dlerror();
		snprintf(why, room, "%s", e ? e : "cannot be loaded");
		return -1;
	}
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		void *p = dlsym(lib, all[i].name);
		if (!p && all[i].needed) {
			snprintf(why, room, "has no %s: its version is too old", all[i].name);
			return -1;
		}
		memcpy(all[i].to, &p, sizeof p);
	}
	return 0;
}

int cuda_init(void) { return f.init(0); }
int cuda_version(int *v) { return f.version(v); }
int cuda_count(int *n) { return f.count(n); }
int cuda_device(int ordinal, int *dev) { return f.device(dev, ordinal); }
int cuda_device_at(const char *bus, int *dev) { return f.at(dev, bus); }
int cuda_name(int dev, char *name, int room) { return f.name(name, room, dev); }
int cuda_attribute(int dev, int attribute, int *value) { return f.attribute(value, attribute, dev); }
int cuda_retain(int dev, void **ctx) { return f.retain(ctx, dev); }
int cuda_release(int dev) { return f.release(dev); }

int cuda_alloc(void *ctx, int host, size_t n, uint64_t *at)
{
	int r = f.current(ctx);
	if (r)
		return r;
	if (!host)
		return f.alloc(at, n);
	void *p = NULL;
	r = f.alloc_host(&p, n);
	*at = (uintptr_t)p;
	return r;
}

int cuda_free(void *ctx, int host, uint64_t at)
{
	int r = f.current(ctx);
	if (r)
		return r;
	return host ? f.free_host((void *)(uintptr_t)at) : f.free(at);
}

int cuda_copy(void *ctx, uint64_t dst, uint64_t src, size_t n)
{
	int r = f.current(ctx);
	return r ? r : f.copy(dst, src, n);
}

int cuda_copy_bytes(void *ctx, uint64_t dst, void *from, void *to, uint64_t src, size_t n)
{
	int r = f.current(ctx);
	if (r)
		return r;
	return from ? f.in(dst, from, n) : f.out(to, src, n);
}

int cuda_export(void *ctx, uint64_t at, size_t n, int *fd)
{
	const int dma_buf = 1; // CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD
	if (!f.export)
		return not_supported;
	int r = f.current(ctx);
	return r ? r : f.export(fd, at, n, dma_buf, 0);
}
