/* Just enough JSON for the lines of the harness: one object a line in, one a line out. */
#ifndef JSON_H
#define JSON_H

#include <stddef.h>

enum json_kind { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_STRING, JSON_LIST, JSON_OBJECT };

typedef struct json {
    enum json_kind kind;
    char *name; /* of a member of an object */
    char *text; /* of a string, ending in NUL */
    long long number;
    struct json *first, *next;
} json;

/* What a line holds, or NULL where it is no JSON; given back with json_free. */
json *json_parse(const char *line);
void json_free(json *what);

const json *json_get(const json *object, const char *name);
const char *json_text(const json *object, const char *name); /* NULL for null */
long long json_number(const json *object, const char *name);
int json_true(const json *object, const char *name);

/* Bytes of base64; NULL stays NULL, and what is empty is not NULL. Given back with free. */
unsigned char *bytes_of(const char *base64, size_t *length);

/* A line that grows. */
typedef struct {
    char *text;
    size_t length, room;
} line;

void add(line *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
void add_string(line *to, const char *text, size_t length);
void add_base64(line *to, const void *data, size_t length); /* null where there is none */

#endif
