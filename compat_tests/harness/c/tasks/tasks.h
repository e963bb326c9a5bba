/* What the words of the scenarios have in common. */
#ifndef TASKS_H
#define TASKS_H

#include "json.h"

/* Does one thing: adds the members of its answer, or says what is wrong. */
typedef const char *word_does(const json *task, line *answer);

typedef struct {
    const char *name;
    word_does *does;
} word;

#endif
