/*
 * top.c: rdgate top. A live table of consumers, the troubled ones first; a key opens one of them. It only
 * reads flight files: the processes shown do not notice. Terminal handling is ncurses'.
 */
#include "cli.h"
#include "clean.h"
#include "detail.h"
#include "rows.h"

#include <curses.h>
#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE 1024

struct options_of_top {
    const char *what; /* PID or file; NULL: all processes */
    bool once, tsv;
    int gate; /* show this one */
    double interval;
    enum row_order order;
};

struct screen {
    struct options_of_top *o;
    struct rows rows;
    char why[FLIGHT_WHY]; /* the process that was asked for cannot be read any more */
    struct row chosen;    /* by identity, so that it stays chosen while the order changes */
    int at, top;          /* index of it, of the first row shown */
    bool inside, paused, help;
    int scroll;
    char **line; /* of the detail */
    char *text;
    int lines;
};

static const char *const order_name[] = {"trouble", "name", "rate"};

static void usage(FILE *to)
{
    fputs(
        "usage: rdgate top [options] [PID | FILE]\n\n"
        "Shows the consumers of a process, or of all processes under rdgate, the troubled ones first.\n\n"
        "  -1, --once           print the table once, and end; the same if the output is no terminal\n"
        "  --tsv                print it once, for machines: tab-separated, times in seconds, all counters\n"
        "  -g, --gate N         one consumer in full: the gate GN of the process\n"
        "  -i, --interval S     seconds between two looks, 0.1 to 60 (default 1)\n"
        "  -s, --sort ORDER     trouble (the default), name or rate\n\n"
        "keys: up, down, page up, page down choose; enter opens, escape goes back; s sorts by something "
        "else;\n"
        "      space stops and goes on; ? explains; q leaves\n\n"
        "flags: H held or waited for longer than RDGATE_STUCK_MS   D in a proven deadlock\n"
        "       P more than 80 % of max.poll.interval.ms without a poll   R a rebalance is not answered\n"
        "       C closing or closed   F inherited by fork\n\n"
        "Exits with 0, 2 for wrong usage, 4 if there is nothing to show or it cannot be read.\n",
        to);
}

/* ------------------------------------------------------------------ reading */

/* The rows of now into r. false: the process that was asked for cannot be read, why says so. */
static bool gather(const struct options_of_top *o, struct rows *r, char why[FLIGHT_WHY])
{
    struct flight f;
    *r = (struct rows){0};
    *why = 0;
    if (!o->what) {
        rows_add_all(r);
        return true;
    }
    if (!flight_open(&f, o->what, why))
        return false;
    rows_add(r, &f);
    if (f.fate == FLIGHT_DIED || f.fate == FLIGHT_CLEAN)
        snprintf(why, FLIGHT_WHY, "process %d has ended: this is how it was left", f.pid);
    flight_shut(&f);
    return true;
}

static void refresh_rows(struct screen *s)
{
    struct rows now;
    if (!gather(s->o, &now, s->why)) {
        rows_free(&now);
        return;
    }
    /* Both by identity: that is what rows_rate compares. */
    struct rows before = s->rows, none = {0};
    rows_rate(&before, &none);
    rows_rate(&now, &before);
    rows_free(&before);
    rows_sort(&now, s->o->order);
    s->rows = now;
}

/* ------------------------------------------------------------------ once */

static int no_rows(const struct options_of_top *o, const struct rows *r)
{
    if (r->unreadable)
        fprintf(stderr, "rdgate top: %s%s\n", r->why, r->unreadable > 1 ? " (and others)" : "");
    else if (o->what)
        fprintf(stderr, "rdgate top: %s has no consumer\n", o->what);
    else
        fputs("rdgate top: no process with a consumer runs under rdgate, as far as this user may see\n",
              stderr);
    return EXIT_NO_FLIGHT;
}

static void pause_for(double seconds)
{
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&t, &t) && errno == EINTR)
        continue;
}

static int once(struct options_of_top *o)
{
    char why[FLIGHT_WHY], line[LINE];
    struct screen s = {.o = o};
    struct table t;
    if (o->gate) {
        struct flight f;
        if (!flight_open(&f, o->what, why)) {
            fprintf(stderr, "rdgate top: %s\n", why);
            return EXIT_NO_FLIGHT;
        }
        detail_write(stdout, &f, o->gate - 1, 40);
        flight_shut(&f);
        return fflush(stdout) ? 1 : 0;
    }
    if (!gather(o, &s.rows, why)) {
        fprintf(stderr, "rdgate top: %s\n", why);
        return EXIT_NO_FLIGHT;
    }
    int first = s.rows.count;
    if (first && !o->tsv && !*why) { /* for the rates */
        pause_for(o->interval);
        refresh_rows(&s);
    }
    rows_sort(&s.rows, o->order);
    if (o->tsv) {
        rows_tsv(&s.rows);
    } else if (s.rows.count) {
        const char *columns = getenv("COLUMNS");
        table_fit(&t, &s.rows, columns ? atoi(columns) : 0);
        table_head(&t, line, sizeof(line));
        puts(line);
        for (int i = 0; i < s.rows.count; i++) {
            table_row(&t, &s.rows.row[i], line, sizeof(line));
            puts(line);
        }
        table_legend(&s.rows, line, sizeof(line));
        if (*line)
            printf("      %s\n", line);
    }
    int result = s.rows.count ? 0 : no_rows(o, &s.rows);
    if (s.rows.count && (*why || s.rows.unreadable))
        fprintf(stderr, "rdgate top: %s\n", *why ? why : s.rows.why);
    rows_free(&s.rows);
    return fflush(stdout) ? 1 : result;
}

/* ------------------------------------------------------------------ the terminal */

static volatile sig_atomic_t ended;

static void ends(int signal)
{
    ended = signal;
}

static bool colours;

static attr_t look_of(const struct row *r)
{
    if (r->flags & ROW_DEADLOCK || (r->flags & ROW_POLL && r->gap >= r->limit))
        return A_BOLD | (colours ? COLOR_PAIR(1) : 0);
    if (r->flags & (ROW_HELD | ROW_POLL | ROW_REBALANCE))
        return colours ? COLOR_PAIR(2) : A_BOLD;
    return r->flags & ROW_CLOSING ? A_DIM : A_NORMAL;
}

static void put_line(int y, const char *text, attr_t look)
{
    int rows, wide;
    getmaxyx(stdscr, rows, wide);
    if (y < 0 || y >= rows)
        return;
    attrset(look);
    move(y, 0);
    clrtoeol();
    wchar_t wcs[LINE];
    size_t n = mbstowcs(wcs, text, LINE);
    if (n == (size_t)-1 || n >= LINE) {
        addnstr(text, wide);
    } else {
        while (n > 0 && wcswidth(wcs, n) > wide)
            n--;
        addnwstr(wcs, (int)n);
    }
    if (look & A_REVERSE) /* to the edge */
        chgat(-1, look & ~A_COLOR, PAIR_NUMBER(look), NULL);
    attrset(A_NORMAL);
}

static bool is_chosen(const struct screen *s, const struct row *r)
{
    return s->chosen.gate == r->gate && s->chosen.pid == r->pid && s->chosen.generation == r->generation;
}

/* Keeps the chosen row chosen, and in sight. */
static void settle(struct screen *s, int height)
{
    int found = -1;
    for (int i = 0; i < s->rows.count && s->chosen.gate; i++)
        if (is_chosen(s, &s->rows.row[i]))
            found = i;
    s->at = found >= 0 ? found : s->at < s->rows.count ? s->at : s->rows.count - 1;
    if (s->at < 0)
        s->at = 0;
    if (s->top > s->at)
        s->top = s->at;
    if (height > 0 && s->at >= s->top + height)
        s->top = s->at - height + 1;
    if (s->top > s->rows.count - height)
        s->top = s->rows.count > height ? s->rows.count - height : 0;
}

static void headline(const struct screen *s, char *line, size_t size)
{
    char clock[16] = "";
    time_t now = time(NULL);
    struct tm tm;
    unsigned waiting = 0, dead = 0;
    if (localtime_r(&now, &tm))
        strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
    for (int i = 0; i < s->rows.count; i++) {
        waiting += s->rows.row[i].waiting;
        dead += (s->rows.row[i].flags & ROW_DEADLOCK) != 0;
    }
    int n = snprintf(line, size, "rdgate top  %s%s  %d consumer%s", clock, s->paused ? " (stopped)" : "",
                     s->rows.count, s->rows.count == 1 ? "" : "s");
    if (s->rows.processes > 1)
        n += snprintf(line + n, size - (size_t)n, " in %d processes", s->rows.processes);
    n += snprintf(line + n, size - (size_t)n, ", %u waiting", waiting);
    if (dead)
        n += snprintf(line + n, size - (size_t)n, ", %u IN A DEADLOCK", dead);
    snprintf(line + n, size - (size_t)n, "  by %s", order_name[s->o->order]);
}

static void draw_table(struct screen *s)
{
    char line[LINE];
    struct table t;
    int rows, wide, y = 0;
    getmaxyx(stdscr, rows, wide);
    bool head = rows > 3, foot = rows > 5, legend = rows > 9;
    int height = rows - (head ? 2 : 0) - (foot ? 1 : 0) - (legend ? 1 : 0);
    settle(s, height);
    table_fit(&t, &s->rows, wide);
    if (head) {
        headline(s, line, sizeof(line));
        put_line(y++, line, A_BOLD);
        table_head(&t, line, sizeof(line));
        put_line(y++, line, A_REVERSE);
    }
    for (int i = s->top; i < s->rows.count && i < s->top + height; i++) {
        table_row(&t, &s->rows.row[i], line, sizeof(line));
        put_line(y++, line, look_of(&s->rows.row[i]) | (i == s->at && s->chosen.gate ? A_REVERSE : 0));
    }
    if (!s->rows.count && height > 0)
        put_line(y++, s->o->what || s->rows.unreadable ? "" : "no process with a consumer runs under rdgate",
                 A_NORMAL);
    table_legend(&s->rows, line, sizeof(line));
    if (legend)
        put_line(rows - 2, line, A_DIM);
    if (*s->why || s->rows.unreadable)
        clean(line, sizeof(line), *s->why ? s->why : s->rows.why, false);
    else
        snprintf(line, sizeof(line), "enter: open   s: sort   space: stop   q: leave   ?: help");
    if (foot)
        put_line(rows - 1, line, A_DIM);
}

static void forget_detail(struct screen *s)
{
    free(s->text);
    free(s->line);
    s->text = NULL;
    s->line = NULL;
    s->lines = 0;
}

static void read_detail(struct screen *s)
{
    struct flight f;
    char why[FLIGHT_WHY];
    size_t size = 0;
    forget_detail(s);
    FILE *to = open_memstream(&s->text, &size);
    if (!to)
        return;
    if (s->help) {
        usage(to);
    } else if (flight_open_file(&f, s->chosen.path, why)) {
        detail_write(to, &f, s->chosen.gate - 1, 200);
        flight_shut(&f);
    } else {
        fprintf(to, "%s\n", why);
    }
    fclose(to);
    int n = 0;
    for (const char *p = s->text; p && *p; p++)
        n += *p == '\n';
    s->line = calloc((size_t)n + 1, sizeof(char *));
    for (char *p = s->text; s->line && p && *p && s->lines < n; p = strchr(p, 0) + 1) {
        s->line[s->lines++] = p;
        *strchr(p, '\n') = 0;
    }
}

static void draw_detail(struct screen *s)
{
    char line[LINE];
    int rows, wide;
    getmaxyx(stdscr, rows, wide);
    (void)wide;
    int height = rows > 3 ? rows - 1 : rows;
    if (s->scroll > s->lines - height)
        s->scroll = s->lines - height;
    if (s->scroll < 0)
        s->scroll = 0;
    for (int y = 0; y < height && s->scroll + y < s->lines; y++)
        put_line(y, s->line[s->scroll + y], y + s->scroll == 0 ? A_BOLD : A_NORMAL);
    if (height < rows) {
        snprintf(line, sizeof(line), "escape: back   up, down: scroll%s   q: leave%s",
                 s->paused ? " (stopped)" : "", s->scroll + height < s->lines ? "   (more below)" : "");
        put_line(rows - 1, line, A_DIM);
    }
}

static void choose(struct screen *s, int at)
{
    if (at >= s->rows.count)
        at = s->rows.count - 1;
    if (at < 0)
        at = 0;
    s->at = at;
    if (s->rows.count)
        s->chosen = s->rows.row[at];
}

/* false: leave. */
static bool key(struct screen *s, int k)
{
    int page = LINES > 4 ? LINES - 4 : 1, by = 0;
    switch (k) {
    case 'q':
    case 'Q': return false;
    case 27:
    case KEY_LEFT:
    case KEY_BACKSPACE:
        if (s->inside || s->help)
            s->inside = s->help = false;
        else
            s->chosen.gate = 0;
        forget_detail(s);
        break;
    case '\n':
    case '\r':
    case KEY_ENTER:
    case KEY_RIGHT:
        if (!s->inside && !s->help && s->rows.count) {
            choose(s, s->at);
            s->inside = true;
            s->scroll = 0;
            read_detail(s);
        }
        break;
    case '?':
    case 'h':
        s->help = !s->help;
        s->scroll = 0;
        forget_detail(s);
        if (s->help || s->inside)
            read_detail(s);
        break;
    case 's':
        s->o->order = (s->o->order + 1) % ROW_ORDERS;
        rows_sort(&s->rows, s->o->order);
        break;
    case ' ': s->paused = !s->paused; break;
    case KEY_UP:
    case 'k': by = -1; break;
    case KEY_DOWN:
    case 'j': by = 1; break;
    case KEY_PPAGE: by = -page; break;
    case KEY_NPAGE: by = page; break;
    case KEY_HOME: by = -1000000; break;
    case KEY_END: by = 1000000; break;
    default: break;
    }
    if (by && (s->inside || s->help))
        s->scroll += by;
    else if (by)
        choose(s, s->chosen.gate ? s->at + by : s->top);
    return true;
}

static double clock_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void draw(struct screen *s)
{
    erase();
    if (s->inside || s->help)
        draw_detail(s);
    else
        draw_table(s);
    refresh();
}

/* Waits for a key until then. false: leave, or the terminal is gone. */
static bool wait_for_keys(struct screen *s, int keys, double until)
{
    for (;;) {
        double left = until - clock_now();
        struct pollfd p = {.fd = keys, .events = POLLIN};
        int n = poll(&p, 1, left > 0 ? (int)(left * 1000) + 1 : 0);
        if (ended)
            return false;
        if (n > 0 && p.revents & (POLLHUP | POLLERR | POLLNVAL) && !(p.revents & POLLIN))
            return false;
        int k = ERR;
        bool any = false;
        while ((n > 0 || (n < 0 && errno == EINTR)) && (k = getch()) != ERR) {
            any = true;
            if (k == KEY_RESIZE)
                clear();
            else if (!key(s, k))
                return false;
        }
        if (any)
            draw(s);
        else if (n > 0)
            return false; /* readable, and nothing to read: the end of the input */
        if (n == 0)
            return true;
    }
}

static int live(struct options_of_top *o)
{
    struct screen s = {.o = o};
    char why[FLIGHT_WHY];
    if (!gather(o, &s.rows, why)) { /* said before the screen is cleared */
        fprintf(stderr, "rdgate top: %s\n", why);
        return EXIT_NO_FLIGHT;
    }
    rows_sort(&s.rows, o->order);
    struct sigaction a = {.sa_handler = ends};
    sigaction(SIGTERM, &a, NULL);
    sigaction(SIGHUP, &a, NULL);
    sigaction(SIGINT, &a, NULL);
    SCREEN *terminal = newterm(NULL, stdout, stdin);
    if (!terminal) {
        fprintf(stderr, "rdgate top: the terminal %s is not known (TERM), so this is shown once\n",
                getenv("TERM") ? getenv("TERM") : "without a name");
        rows_free(&s.rows);
        return once(o);
    }
    cbreak();
    noecho();
    nonl();
    curs_set(0);
    nodelay(stdscr, TRUE);
    keypad(stdscr, TRUE);
    set_escdelay(25);
    const char *plain = getenv("NO_COLOR");
    colours = !(plain && *plain) && has_colors() && start_color() == OK && use_default_colors() == OK &&
              init_pair(1, COLOR_RED, -1) == OK && init_pair(2, COLOR_YELLOW, -1) == OK;
    int keys = isatty(STDIN_FILENO) ? STDIN_FILENO : -1;
    if (o->gate && s.rows.count) {
        for (int i = 0; i < s.rows.count; i++)
            if (s.rows.row[i].gate == o->gate)
                choose(&s, i);
        s.inside = s.chosen.gate == o->gate;
        if (s.inside)
            read_detail(&s);
    }
    for (bool first = true;; first = false) {
        double next = clock_now() + (first && o->interval > 0.5 ? 0.5 : o->interval); /* rates soon */
        if (!s.paused && !first) {
            refresh_rows(&s);
            if (s.inside && !s.help)
                read_detail(&s);
        }
        draw(&s);
        if (!wait_for_keys(&s, keys, next))
            break;
    }
    if (ended != SIGHUP)
        endwin();
    delscreen(terminal);
    forget_detail(&s);
    rows_free(&s.rows);
    return ended ? 128 + ended : 0;
}

/* ------------------------------------------------------------------ the command line */

static const char *value_of(int argc, char **argv, int *i, const char *name, const char *letter)
{
    size_t n = strlen(name);
    const char *arg = argv[*i];
    if (strncmp(arg, name, n) == 0 && arg[n] == '=')
        return arg + n + 1;
    if ((strcmp(arg, name) == 0 || strcmp(arg, letter) == 0) && *i + 1 < argc)
        return argv[++*i];
    return NULL;
}

static bool parse(int argc, char **argv, struct options_of_top *o)
{
    const char *v;
    char *end;
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        if (strcmp(arg, "-1") == 0 || strcmp(arg, "--once") == 0) {
            o->once = true;
        } else if (strcmp(arg, "--tsv") == 0) {
            o->once = o->tsv = true;
        } else if ((v = value_of(argc, argv, &i, "--interval", "-i"))) {
            o->interval = strtod(v, &end);
            if (end == v || *end || !(o->interval >= 0.1 && o->interval <= 60)) {
                fprintf(stderr, "rdgate top: --interval is 0.1 to 60 seconds, not %s\n", v);
                return false;
            }
        } else if ((v = value_of(argc, argv, &i, "--gate", "-g"))) {
            long n = strtol(*v == 'G' ? v + 1 : v, &end, 10);
            if (*end || n < 1 || n > FLIGHT_CONSUMERS) {
                fprintf(stderr, "rdgate top: --gate is 1 to %d, not %s\n", FLIGHT_CONSUMERS, v);
                return false;
            }
            o->gate = (int)n;
        } else if ((v = value_of(argc, argv, &i, "--sort", "-s"))) {
            int k = 0;
            while (k < ROW_ORDERS && strcmp(order_name[k], v) != 0)
                k++;
            if (k == ROW_ORDERS) {
                fprintf(stderr, "rdgate top: --sort is trouble, name or rate, not %s\n", v);
                return false;
            }
            o->order = (enum row_order)k;
        } else if (*arg == '-') {
            fprintf(stderr, "rdgate top: no option %s, or it needs a value (rdgate top --help)\n", arg);
            return false;
        } else if (o->what) {
            fputs("rdgate top: one process, or none for all\n", stderr);
            return false;
        } else {
            o->what = arg;
        }
    }
    if (o->gate && !o->what)
        fputs("rdgate top: --gate needs the process as well\n", stderr);
    return !o->gate || o->what;
}

int cli_top(int argc, char **argv)
{
    struct options_of_top o = {.interval = 1};
    setlocale(LC_ALL, "");
    setlocale(LC_NUMERIC, "C");
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            usage(stdout);
            return 0;
        }
    if (!parse(argc, argv, &o))
        return EXIT_USAGE;
    if (o.once || !isatty(STDOUT_FILENO))
        return once(&o);
    return live(&o);
}
