#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* A token passes the ring and everybody adds to it; then all to all, and puts into the next rank's window. Each byte is checked. */
int main(int argc, char **argv) {
  int rank, n, bad = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  for (int size = 1; size <= 1 << 18; size *= 64) {
    unsigned char *in = malloc(size * n), *out = malloc(size * n);
    for (int k = 0; k < 3; k++) {
      if (rank == 0) {
        memset(out, size + k, size);
        MPI_Send(out, size, MPI_BYTE, 1 % n, k, MPI_COMM_WORLD);
        MPI_Recv(in, size, MPI_BYTE, n - 1, k, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      } else {
        MPI_Recv(in, size, MPI_BYTE, rank - 1, k, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < size; i++) out[i] = in[i] + 1;
        MPI_Send(out, size, MPI_BYTE, (rank + 1) % n, k, MPI_COMM_WORLD);
      }
      for (int i = 0; i < size; i++) bad += in[i] != (unsigned char)(size + k + (rank ? rank - 1 : n - 1));
    }
    for (int i = 0; i < size * n; i++) out[i] = rank * 7 + i;
    MPI_Alltoall(out, size, MPI_BYTE, in, size, MPI_BYTE, MPI_COMM_WORLD);
    for (int p = 0; p < n; p++)
      for (int i = 0; i < size; i++) bad += in[p * size + i] != (unsigned char)(p * 7 + rank * size + i);
    MPI_Win w;
    MPI_Win_create(in, size * n, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w);
    MPI_Win_fence(0, w);
    MPI_Put(out, size, MPI_BYTE, (rank + 1) % n, rank * size, size, MPI_BYTE, w);
    MPI_Win_fence(0, w);
    int prev = (rank + n - 1) % n;
    for (int i = 0; i < size; i++) bad += in[prev * size + i] != (unsigned char)(prev * 7 + i);
    MPI_Win_free(&w);
    free(in); free(out);
  }
  int all;
  MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (!rank) printf("ranks %d wrong bytes %d\n", n, all);
  MPI_Finalize();
  return all != 0;
}
