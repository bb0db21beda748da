/*
 * A program that is killed with objects of two contexts, or three, and says beforehand in which order the kernel should destroy them:
 *
 *   dies DEVICE SEED    a line "KIND 0xNUMBER" for each object of the device that goes, first those that it destroys itself
 *
 * Files go from the highest descriptor down, and the objects of each newest first.
 */
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OBJECTS 24

enum kind { PD, CQ, QP, MW };
static const char *const names[] = {"DEALLOC_PD", "DESTROY_CQ", "DESTROY_QP", "DESTROY_MKEY"};

struct object {
	enum kind kind;
	void *it;
	uint32_t number;
};

struct file {
	struct ibv_context *ctx;
	struct object objects[OBJECTS + 2];
	int n;
};

static void must(int ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "dies: %s: %s\n", what, strerror(errno));
		exit(1);
	}
}

static struct ibv_device *find(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	must(!!list, "ibv_get_device_list");
	for (; *list; list++)
		if (!strcmp(ibv_get_device_name(*list), name))
			return *list;
	errno = ENODEV;
	must(0, name);
	return NULL;
}

static void add(struct file *f, enum kind kind)
{
	struct object *o = &f->objects[f->n++];
	struct mlx5dv_pd pd = {0};
	struct mlx5dv_cq cq = {0};
	struct mlx5dv_obj dv = {0};

	o->kind = kind;
	switch (kind) {
	case PD:
		must(!!(o->it = ibv_alloc_pd(f->ctx)), "ibv_alloc_pd");
		dv.pd.in = o->it;
		dv.pd.out = &pd;
		must(!mlx5dv_init_obj(&dv, MLX5DV_OBJ_PD), "mlx5dv_init_obj of a PD");
		o->number = pd.pdn;
		break;
	case CQ:
		must(!!(o->it = ibv_create_cq(f->ctx, 16, NULL, NULL, 0)), "ibv_create_cq");
		dv.cq.in = o->it;
		dv.cq.out = &cq;
		must(!mlx5dv_init_obj(&dv, MLX5DV_OBJ_CQ), "mlx5dv_init_obj of a CQ");
		o->number = cq.cqn;
		break;
	case QP: {
		struct ibv_qp_init_attr a = {.send_cq = f->objects[1].it, .recv_cq = f->objects[1].it, .qp_type = IBV_QPT_RC,
			.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};

		must(!!(o->it = ibv_create_qp(f->objects[0].it, &a)), "ibv_create_qp");
		o->number = ((struct ibv_qp *)o->it)->qp_num;
		break;
	}
	case MW:
		must(!!(o->it = ibv_alloc_mw(f->objects[0].it, IBV_MW_TYPE_1)), "ibv_alloc_mw");
		o->number = ((struct ibv_mw *)o->it)->rkey >> 8;
		break;
	}
}

static void say(const struct object *o) { printf("%s 0x%x\n", names[o->kind], o->number); }

static void give_back(struct file *f, int i)
{
	struct object o = f->objects[i];

	say(&o);
	switch (o.kind) {
	case PD: must(!ibv_dealloc_pd(o.it), "ibv_dealloc_pd"); break;
	case CQ: must(!ibv_destroy_cq(o.it), "ibv_destroy_cq"); break;
	case QP: must(!ibv_destroy_qp(o.it), "ibv_destroy_qp"); break;
	case MW: must(!ibv_dealloc_mw(o.it), "ibv_dealloc_mw"); break;
	}
	memmove(&f->objects[i], &f->objects[i + 1], (--f->n - i) * sizeof(*f->objects));
}

static void begin(struct file *f, struct ibv_device *d)
{
	memset(f, 0, sizeof(*f));
	must(!!(f->ctx = ibv_open_device(d)), "ibv_open_device");
	add(f, PD); /* these two are of all queue pairs and windows */
	add(f, CQ);
}

static int by_descriptor(const void *a, const void *b)
{
	return ((const struct file *)b)->ctx->cmd_fd - ((const struct file *)a)->ctx->cmd_fd;
}

int main(int argc, char **argv)
{
	struct file files[3];
	struct ibv_device *d;
	int n = 2, i, k;

	if (argc != 3) {
		fprintf(stderr, "usage: dies DEVICE SEED\n");
		return 2;
	}
	d = find(argv[1]);
	srand(atoi(argv[2]));
	begin(&files[0], d);
	begin(&files[1], d);
	if (rand() % 2) { /* one that is opened last, and has the lowest descriptors */
		while (files[0].n)
			give_back(&files[0], files[0].n - 1);
		must(!ibv_close_device(files[0].ctx), "ibv_close_device");
		begin(&files[0], d);
	} else if (rand() % 2) {
		begin(&files[n++], d);
	}
	for (i = 0; i < OBJECTS; i++) {
		struct file *f = &files[rand() % n];

		if (f->n >= OBJECTS)
			continue;
		add(f, rand() % 4);
		if (rand() % 4 == 0 && f->n > 2)
			give_back(f, 2 + rand() % (f->n - 2));
	}
	qsort(files, n, sizeof(*files), by_descriptor);
	for (i = 0; i < n; i++)
		for (k = files[i].n; k-- > 0;)
			say(&files[i].objects[k]);
	fflush(stdout);
	raise(SIGKILL);
	return 1;
}
