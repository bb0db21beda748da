// Leaves chains of processes behind when it ends after some milliseconds, each of which starts the next one and ends, so that none lives for
// long. They end by themselves after 30 s.
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv) {
	time_t begin = time(NULL);

	for (int i = 0; i < atoi(argv[1]); i++) {
		if (fork())
			continue;
		setsid();
		while (time(NULL) < begin + 30) {
			pid_t p = fork();
			if (p > 0)
				_exit(0);
			if (p < 0)
				usleep(100);
		}
		_exit(0);
	}
	close(open(getenv("READY"), O_WRONLY | O_CREAT, 0666));
	usleep(atoi(argv[2]) * 1000);
	return 7;
}
