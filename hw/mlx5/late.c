//go:build hw

#define _GNU_SOURCE
#include <dlfcn.h>

#include "verbs.h"

// Functions that the libraries of some distributions do not have yet: they are looked up when they are called.

void *hw_find(const char *name) { return dlsym(RTLD_DEFAULT, name); }

int hw_late_dm_export(void *f, struct ibv_dm *dm) { return ((int (*)(struct ibv_dm *))f)(dm); }

void *hw_late_alloc_buf(void *f, struct ibv_pd *pd, size_t size, void **buf)
{
	return ((void *(*)(struct ibv_pd *, size_t, void **))f)(pd, size, buf);
}

void hw_late_free_buf(void *f, void *buf) { ((void (*)(void *))f)(buf); }

struct ibv_mr *hw_late_reg_buf_mr(void *f, struct ibv_pd *pd, void *buf, void *addr, size_t length, int access)
{
	return ((struct ibv_mr *(*)(struct ibv_pd *, void *, void *, size_t, int))f)(pd, buf, addr, length, access);
}

int hw_late_export_buf(void *f, void *buf) { return ((int (*)(void *))f)(buf); }
