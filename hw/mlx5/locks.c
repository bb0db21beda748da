//go:build hw

#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>

#include "verbs.h"

// libmlx5 takes its locks by pthread_spin_lock of the C library, if at all. The program's own function of that name comes first
// when the library is bound, so that each lock that it takes passes here; which object it is of, its address tells.

struct watch {
	int on;
	uintptr_t from, to;
	uint64_t own, other, waits;
};

static __thread struct watch watched;

static int (*real_lock)(pthread_spinlock_t *);

__attribute__((constructor)) static void find_lock(void)
{
	real_lock = (int (*)(pthread_spinlock_t *))dlsym(RTLD_NEXT, "pthread_spin_lock");
}

__attribute__((visibility("default"))) int pthread_spin_lock(pthread_spinlock_t *lock)
{
	struct watch *w = &watched;

	if (!real_lock)
		find_lock();
	if (!w->on)
		return real_lock(lock);
	if ((uintptr_t)lock >= w->from && (uintptr_t)lock < w->to)
		w->own++;
	else
		w->other++;
	if (!pthread_spin_trylock(lock))
		return 0;
	w->waits++;
	return real_lock(lock);
}

// Before its ibv_qp or ibv_srq a block of libmlx5 has 8 bytes of its own; blocks begin at multiples of 16.
static uintptr_t block(const void *object)
{
	return (uintptr_t)object & ~(uintptr_t)15;
}

size_t hw_object_size(void *object)
{
	return malloc_usable_size((void *)block(object));
}

void hw_locks_begin(const struct hw_locks *l, const void *object)
{
	if (!l || !l->size)
		return;
	watched = (struct watch){ .on = 1, .from = block(object), .to = block(object) + l->size };
}

void hw_locks_end(struct hw_locks *l)
{
	if (!watched.on)
		return;
	watched.on = 0;
	__atomic_fetch_add(&l->own, watched.own, __ATOMIC_RELAXED);
	__atomic_fetch_add(&l->other, watched.other, __ATOMIC_RELAXED);
	__atomic_fetch_add(&l->waits, watched.waits, __ATOMIC_RELAXED);
}
