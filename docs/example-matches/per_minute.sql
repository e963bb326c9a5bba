SELECT window.start AS minute,
       team,
       count(*) AS events,
       count_if(kind = 'goal') AS goals
FROM matches
GROUP BY window(at, '1 minute'), team
