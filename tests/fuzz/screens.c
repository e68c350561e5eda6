/* sources: cli/flight.c cli/top.c cli/detail.c cli/rows.c cli/metrics.c cli/trace.c cli/timeline.c */
/* sources: cli/event.c cli/clean.c call.c verdict.c */
/*
 * screens FILE SECONDS: what dump.c here does to rdgate dump, to top, metrics and trace.
 */
#define cli_dump each_in_turn
#include "dump.c" /* NOLINT(bugprone-suspicious-include) */

/* Gets a command line for dump, of which only the file counts. */
int each_in_turn(int argc, char **argv)
{
    static unsigned turn;
    char *path = argv[1];
    char *once[] = {"top", "-1", "-i", "0.1", path, NULL}, *tsv[] = {"top", "--tsv", path, NULL},
         *one[] = {"top", "-1", "-g", "1", path, NULL}, *metrics[] = {"metrics", path, NULL},
         *chrome[] = {"trace", "--chrome", path, NULL}, *html[] = {"trace", "--html", path, NULL};
    (void)argc;
    switch (turn++ % 6) {
    case 0: return cli_top(3, tsv);
    case 1: return cli_top(5, one);
    case 2: return cli_metrics(2, metrics);
    case 3: return cli_trace(3, chrome);
    case 4: return cli_trace(3, html);
    default: return cli_top(5, once);
    }
}
